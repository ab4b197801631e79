#!/bin/sh
# Make sure that there is a Java for Spark: 17 or later. Says nothing when there is one.
#
# As root on a system with apt-get it installs Java 17; elsewhere it says what to do and fails. The engine 'local'
# needs no Java, so whoever calls this may go on without it.
set -eu

least=17
package=openjdk-$least-jre-headless

# Spark takes JAVA_HOME first, then the path.
if [ -n "${JAVA_HOME:-}" ]; then java=$JAVA_HOME/bin/java; else java=java; fi

version() {
    "$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

enough() {
    command -v "$java" >/dev/null 2>&1 || return 1
    found=$(version)
    [ -n "$found" ] && [ "$found" -ge "$least" ]
}

give_up() {
    if command -v "$java" >/dev/null 2>&1; then
        have="'$java' is version $(version)"
    else
        have="there is none"
    fi
    {
        echo "headway: the engine 'spark' needs Java $least or later, and $have."
        echo "  Debian, Ubuntu: sudo apt-get install $package"
        echo "  others: install any Java $least, and set JAVA_HOME if it is not on the path"
        echo "  without it: headway run … --engine local"
    } >&2
    exit 1
}

if enough; then exit 0; fi
# Another Java in JAVA_HOME would still be the one that Spark takes.
if [ -n "${JAVA_HOME:-}" ] || [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then give_up; fi

echo "installing Java $least ($package)" >&2
install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null
}
# The list of packages may be missing, in a fresh container for instance, or old.
install 2>/dev/null || { apt-get update -qq >/dev/null && install; } || give_up
enough || give_up
