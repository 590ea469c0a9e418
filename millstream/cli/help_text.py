"""The texts of `millstream --help` and `millstream help TOPIC`, and completion scripts."""

from collections.abc import Mapping, Sequence

TOPICS = {
    "start": """\
Kafka on this machine, in the background:

  millstream up                  broker 9092, schema registry 8081, REST proxy 8082, Connect 8083
  millstream status              show the state of each part
  millstream logs -f             show the log messages
  millstream down                stop it; data stays for the next up

  millstream up --brokers 3      a cluster
  millstream up --only broker    only Kafka
  millstream up --ephemeral      delete all data at the end
  millstream up --any-port       use free ports, and print them
""",
    "clients": """\
Every Kafka client works. `millstream up` prints variables to export; they are also in
~/.millstream/stacks/default/env. Every command of millstream takes its addresses and the file of
client settings from them: KAFKA_BOOTSTRAP_SERVERS, SCHEMA_REGISTRY_URL, CONNECT_URL and
MILLSTREAM_COMMAND_CONFIG.

  kcat        echo hello | kcat -b 127.0.0.1:9092 -t greetings
  Python      Producer({"bootstrap.servers": "127.0.0.1:9092"})        # confluent-kafka
  curl        curl 127.0.0.1:8082/topics/greetings \\
                -H 'Content-Type: application/vnd.kafka.json.v2+json' \\
                -d '{"records": [{"value": "hello"}]}'
  millstream  millstream console-consumer --topic greetings --from-beginning
""",
    "ports": """\
  8080  the stack's page       8082  REST proxy
  8081  schema registry        8083  Connect
  9092  broker 1, the next brokers on the next ports

If a port is in use, `millstream up` names the process and starts nothing. --any-port uses free
ports, --offset-ports N adds N to all ports, so that a second stack can run beside the first.
""",
    "seeds": """\
Topics, schemas and records that `millstream up` creates (--seed FILE, --topics FILE), as YAML:

  topics:
    - orders:3:1:compact                      # name:partitions:replicas:policy
    - name: fruit
      partitions: 3
      config: {retention.ms: 3600000}
      value:
        type: AVRO
        schema: {type: record, name: Fruit, fields: [{name: name, type: string}]}
      records:
        - {key: a, value: {name: apple}}
  schemas:
    - {subject: other-value, type: AVRO, schema: '"string"'}

It is safe to repeat: existing topics and schemas stay. A stack is ready when all seeds exist.
""",
    "data": """\
A stack keeps its data in ~/.millstream/stacks/default/data for the next `up`, or in --data DIR, or
not at all with --ephemeral. `millstream down --delete-data` deletes it. The variable
MILLSTREAM_HOME replaces ~/.millstream.
""",
    "completion": """\
  bash    eval "$(millstream completion bash)"            # in ~/.bashrc
  zsh     eval "$(millstream completion zsh)"             # in ~/.zshrc, behind compinit
  fish    millstream completion fish > ~/.config/fish/completions/millstream.fish
""",
}

OWN_HELP = {
    "service": """\
usage: millstream service NAME [OPTIONS]

Run one service of the order pipeline until SIGTERM. `millstream service` lists their names,
`millstream service NAME --help` shows the options of one.

examples:
  millstream service orders --http-port 8090
  millstream service fraud --bootstrap-servers localhost:9092
""",
    "help": """\
usage: millstream help [TOPIC | COMMAND]

Explain a topic, or a command; without one, list all commands.

examples:
  millstream help clients
  millstream help console-producer
""",
    "version": """\
usage: millstream version

Print the version of Millstream.

examples:
  millstream version
  millstream --version
""",
    "completion": """\
usage: millstream completion {bash,zsh,fish}

Print the script that completes the commands, topics and options of millstream in a shell.

examples:
  eval "$(millstream completion bash)"
  millstream completion fish > ~/.config/fish/completions/millstream.fish
""",
}
"""The help of commands that `millstream` itself implements."""


def usage(groups: Mapping[str, Mapping[str, str]]) -> str:
    """Return the list of commands by group, each with its description."""
    width = max(len(name) for commands in groups.values() for name in commands)
    lines = ["usage: millstream COMMAND [ARGUMENTS]"]
    for group, commands in groups.items():
        lines += ["", f"{group}:"]
        lines += [f"  {name:{width}}  {what}" for name, what in commands.items()]
    topics = ", ".join(TOPICS)
    lines += [
        "",
        "`millstream COMMAND --help` shows its arguments, `millstream help TOPIC` explains:",
        f"{topics}.",
    ]
    return "\n".join(lines)


COMPLETIONS = {
    "bash": """\
_millstream() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" command="${{COMP_WORDS[1]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    elif [ "${{COMP_WORDS[COMP_CWORD-1]}}" = --only ]; then
        words="{parts}"
    elif [[ "$word" == -* ]]; then
        words="$(millstream "$command" --help 2>/dev/null \\
            | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u)"
    elif [ "$COMP_CWORD" -eq 2 ]; then
        case "$command" in
{cases}
        esac
    fi
    if [ -n "$words" ]; then
        COMPREPLY=( $(compgen -W "$words" -- "$word") )
    else
        COMPREPLY=( $(compgen -f -- "$word") )
    fi
}}
complete -o filenames -F _millstream millstream
""",
    "zsh": """\
_millstream() {{
    local words_of=""
    if (( CURRENT == 2 )); then
        words_of="{commands}"
    elif [[ "$words[CURRENT-1]" == --only ]]; then
        words_of="{parts}"
    elif [[ "$PREFIX" == -* ]]; then
        words_of="$(millstream "$words[2]" --help 2>/dev/null \\
            | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u)"
    elif (( CURRENT == 3 )); then
        case "$words[2]" in
{cases}
        esac
    fi
    if [[ -n "$words_of" ]]; then
        compadd -- ${{=words_of}}
    else
        _files
    fi
}}
compdef _millstream millstream
""",
    "fish": """\
function __millstream_flags
    set -l words (commandline -opc)
    millstream $words[2] --help 2>/dev/null | string match -ra -- '--[a-z][a-z0-9-]+' | sort -u
end
complete -c millstream -n __fish_use_subcommand -f -a "{commands}"
{cases}
complete -c millstream -l only -x -a "{parts}"
complete -c millstream -n "not __fish_use_subcommand" -a "(__millstream_flags)"
""",
}
_CASES = {
    "bash": '        {command}) words="{words}" ;;',
    "zsh": '        {command}) words_of="{words}" ;;',
    "fish": 'complete -c millstream -n "__fish_seen_subcommand_from {command}" -f -a "{words}"',
}


def completion(
    shell: str,
    commands: Sequence[str],
    words: Mapping[str, Sequence[str]],
    parts: Sequence[str],
) -> str:
    """Return the completion script for a shell; raise KeyError for an unknown shell.

    `words` are what may stand behind each command, `parts` those of a stack, for `--only`.
    """
    topics = [topic for topic in TOPICS if topic not in commands]
    after = {**words, "help": [*topics, *commands], "completion": list(COMPLETIONS)}
    cases = "\n".join(
        _CASES[shell].format(command=command, words=" ".join(found))
        for command, found in after.items()
    )
    return COMPLETIONS[shell].format(
        commands=" ".join(commands), cases=cases, parts=" ".join(parts)
    )
