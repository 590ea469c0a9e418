#!/bin/sh
# Print the folder with Apache Kafka's jars, fetching them with Maven the first time (130 MB).
# MILLSTREAM_KAFKA_LIBS names a folder that has them already. Fails without Java, or without Maven
# when there is something to fetch; the tests then skip and say so.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
libs=${MILLSTREAM_KAFKA_LIBS:-$here/../../../build/kafka-libs}
command -v java >/dev/null || { echo "Java is not installed" >&2; exit 1; }
jars="kafka_2.13 kafka-streams-examples"
# A folder of somebody's own may lack what only the tests of Connect need: those skip.
[ -n "${MILLSTREAM_KAFKA_LIBS:-}" ] || jars="$jars connect-transforms"
is_complete() { for jar in $jars; do ls "$libs/$jar"-*.jar >/dev/null 2>&1 || return 1; done; }
if ! is_complete; then
    [ -z "${MILLSTREAM_KAFKA_LIBS:-}" ] || { echo "no Kafka jars in $libs" >&2; exit 1; }
    command -v mvn >/dev/null || { echo "Maven is not installed and $libs is empty" >&2; exit 1; }
    rm -rf "$libs.part"
    mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$libs.part" >&2
    rm -rf "$libs" && mv "$libs.part" "$libs"
fi
cd "$libs" && pwd
