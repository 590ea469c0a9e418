"""The texts of `millrace --help` and `millrace help TOPIC`, and suggestions for mistyped words."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

TOPICS = {
    "start": """\
Kafka on this machine, in the background:

  millrace up                  broker 9092, schema registry 8081, REST proxy 8082, Connect 8083
  millrace status              show the state of each part
  millrace logs -f             show the log messages
  millrace down                stop it; data stays for the next up

  millrace up --brokers 3      a cluster
  millrace up --only broker    only Kafka
  millrace up --ephemeral      delete all data at the end
  millrace up --any-port       use free ports, and print them
""",
    "clients": """\
Every Kafka client works. `millrace up` prints variables to export; they are also in
~/.millrace/stacks/default/env.

  kcat        echo hello | kcat -b 127.0.0.1:9092 -t greetings
  Python      Producer({"bootstrap.servers": "127.0.0.1:9092"})        # confluent-kafka
  curl        curl 127.0.0.1:8082/topics/greetings \\
                -H 'Content-Type: application/vnd.kafka.json.v2+json' \\
                -d '{"records": [{"value": "hello"}]}'
  millrace    millrace console-producer, millrace console-consumer, millrace topics --list
""",
    "ports": """\
  8080  the stack's page       8082  REST proxy
  8081  schema registry        8083  Connect
  9092  broker 1, the next brokers on the next ports

If a port is in use, `millrace up` names the process and starts nothing. --any-port uses free ports,
--offset-ports N adds N to all ports, so that a second stack can run beside the first.
""",
    "seeds": """\
Topics, schemas and records that `millrace up` creates (--seed FILE, --topics FILE), as YAML:

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
A stack keeps its data in ~/.millrace/stacks/default/data for the next `up`, or in --data DIR, or
not at all with --ephemeral. `millrace down --delete-data` deletes it. The variable MILLRACE_HOME
replaces ~/.millrace.
""",
    "completion": """\
  bash    eval "$(millrace completion bash)"            # in ~/.bashrc
  zsh     eval "$(millrace completion zsh)"             # in ~/.zshrc, behind compinit
  fish    millrace completion fish > ~/.config/fish/completions/millrace.fish
""",
}

OWN_HELP = {
    "service": """\
usage: millrace service NAME [OPTIONS]

Run one service of the order pipeline until SIGTERM. `millrace service` lists their names,
`millrace service NAME --help` shows the options of one.

examples:
  millrace service orders --http-port 8090
  millrace service fraud --bootstrap-servers localhost:9092
""",
    "help": """\
usage: millrace help [TOPIC | COMMAND]

Explain a topic, or a command; without one, list all commands.

examples:
  millrace help clients
  millrace help console-producer
""",
    "version": """\
usage: millrace version

Print the version of Millrace.

examples:
  millrace version
  millrace --version
""",
    "completion": """\
usage: millrace completion {bash,zsh,fish}

Print the script that completes the commands, topics and options of millrace in a shell.

examples:
  eval "$(millrace completion bash)"
  millrace completion fish > ~/.config/fish/completions/millrace.fish
""",
}
"""The help of commands that `millrace` itself implements."""


def usage(groups: Mapping[str, Mapping[str, str]]) -> str:
    """Return the list of commands by group, each with its description."""
    width = max(len(name) for commands in groups.values() for name in commands)
    lines = ["usage: millrace COMMAND [ARGUMENTS]"]
    for group, commands in groups.items():
        lines += ["", f"{group}:"]
        lines += [f"  {name:{width}}  {what}" for name, what in commands.items()]
    topics = ", ".join(TOPICS)
    lines += [
        "",
        "`millrace COMMAND --help` shows a command's arguments, `millrace help TOPIC` explains:",
        f"{topics}.",
    ]
    return "\n".join(lines)


def suggestion(slip: str, known: Iterable[str]) -> str:
    """Return a question with similar words; empty if no word is similar."""
    found = get_close_matches(slip, list(known), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(found)}?" if found else ""


COMPLETIONS = {
    "bash": """\
_millrace() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" command="${{COMP_WORDS[1]}}"
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=( $(compgen -W "{commands}" -- "$word") )
    elif [ "$command" = help ]; then
        COMPREPLY=( $(compgen -W "{topics} {commands}" -- "$word") )
    elif [ "$command" = service ] && [ "$COMP_CWORD" -eq 2 ]; then
        COMPREPLY=( $(compgen -W "{services}" -- "$word") )
    elif [ "$command" = completion ]; then
        COMPREPLY=( $(compgen -W "bash zsh fish" -- "$word") )
    elif [[ "$word" == -* ]]; then
        COMPREPLY=( $(compgen -W "$(millrace "$command" --help 2>/dev/null \\
            | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u)" -- "$word") )
    else
        COMPREPLY=( $(compgen -f -- "$word") )
    fi
}}
complete -o filenames -F _millrace millrace
""",
    "zsh": """\
_millrace() {{
    if (( CURRENT == 2 )); then
        compadd -- {commands}
    elif [[ "$words[2]" == help ]]; then
        compadd -- {topics} {commands}
    elif [[ "$words[2]" == service && CURRENT -eq 3 ]]; then
        compadd -- {services}
    elif [[ "$words[2]" == completion ]]; then
        compadd -- bash zsh fish
    elif [[ "$PREFIX" == -* ]]; then
        compadd -- $(millrace "$words[2]" --help 2>/dev/null \\
            | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u)
    else
        _files
    fi
}}
compdef _millrace millrace
""",
    "fish": """\
function __millrace_flags
    set -l words (commandline -opc)
    millrace $words[2] --help 2>/dev/null | string match -ra -- '--[a-z][a-z0-9-]+' | sort -u
end
complete -c millrace -n __fish_use_subcommand -f -a "{commands}"
complete -c millrace -n "__fish_seen_subcommand_from help" -f -a "{topics} {commands}"
complete -c millrace -n "__fish_seen_subcommand_from service" -f -a "{services}"
complete -c millrace -n "__fish_seen_subcommand_from completion" -f -a "bash zsh fish"
complete -c millrace -n "not __fish_use_subcommand" -a "(__millrace_flags)"
""",
}


def completion(shell: str, commands: Sequence[str], services: Sequence[str]) -> str:
    """Return the completion script for a shell; raise KeyError for an unknown shell."""
    topics = [topic for topic in TOPICS if topic not in commands]
    return COMPLETIONS[shell].format(
        commands=" ".join(commands), topics=" ".join(topics), services=" ".join(services)
    )
