"""The handlers of share groups: ShareFetch and ShareAcknowledge."""
