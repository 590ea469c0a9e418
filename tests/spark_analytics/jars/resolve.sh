#!/bin/sh
# Fetch the official Kafka connector of Spark (and its Avro functions) into build/spark-jars.
#
#   tests/spark_analytics/jars/resolve.sh [FOLDER]
#
# Needs mvn and Java. The jars are never committed. Two traps, both met here: Spark's parent POM
# names a second repository that is not always reachable, so a generated settings.xml sends every
# request to Maven Central (or to $MAVEN_MIRROR); and not every connector release has all its parts
# there, so pom.xml beside this script pins a set that is complete and works with PySpark 4.2.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=${1:-$here/../../../build/spark-jars}
mkdir -p "$target"
target=$(cd "$target" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/settings.xml" <<XML
<settings><mirrors><mirror>
  <id>one</id><mirrorOf>*</mirrorOf>
  <url>${MAVEN_MIRROR:-https://repo.maven.apache.org/maven2}</url>
</mirror></mirrors></settings>
XML
cp "$here/pom.xml" "$work/pom.xml"
mvn -B -q -s "$work/settings.xml" -f "$work/pom.xml" dependency:copy-dependencies \
    -DincludeScope=runtime -DexcludeTransitive=true -DoutputDirectory="$work/jars"
mv "$work"/jars/*.jar "$target"/
ls "$target"
