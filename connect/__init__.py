"""The program that brings data in and out of topics; `README.md` says where to start."""
