"""What `millrace --help` and `millrace help TOPIC` say, and what is suggested for a slip. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

TOPICS = {
    "start": """\
Kafka on this machine, in the background:

  millrace up                  broker 9092, schema registry 8081, REST proxy 8082, Connect 8083
  millrace status              how everything is
  millrace logs -f             what it logs
  millrace down                stop it; data stays for the next up

  millrace up --brokers 3      a cluster
  millrace up --only broker    only Kafka
  millrace up --ephemeral      forget everything at the end
  millrace up --any-port       take free ports, and say which
""",
    "clients": """\
Every client of Kafka works. `millrace up` prints variables to export; the same are in
~/.millrace/stacks/default/env.

  kcat        echo hello | kcat -b 127.0.0.1:9092 -t greetings
  Python      Producer({"bootstrap.servers": "127.0.0.1:9092"})        # confluent-kafka
  curl        curl 127.0.0.1:8082/topics/greetings \\
                -H 'Content-Type: application/vnd.kafka.json.v2+json' \\
                -d '{"records": [{"value": "hello"}]}'
  here        millrace console-producer, millrace console-consumer, millrace topics --list
""",
    "ports": """\
  8080  the stack's page       8082  REST proxy
  8081  schema registry        8083  Connect
  9092  broker 1, the next brokers on the next ports

A port that somebody has is refused before anything starts, with who has it. --any-port takes free
ones, --offset-ports N adds N to all; that is also how a second stack runs beside the first.
""",
    "seeds": """\
Topics, schemas and records that a stack has from its start (--seed FILE, --topics FILE), as YAML:

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

It is safe to repeat: what is there stays. A stack is ready when its seeds are there.
""",
    "data": """\
A stack keeps its data in ~/.millrace/stacks/default/data for the next `up`, or in --data DIR, or
not at all with --ephemeral. `millrace down --delete-data` deletes it. MILLRACE_HOME is another
place than ~/.millrace.
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
"""What the commands say that this command answers by itself."""


def usage(groups: Mapping[str, Mapping[str, str]]) -> str:
    """Return the commands by group, each with what it does."""
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
    """Return a question that names what may have been meant, nothing when that is far off."""
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
    """Return the script that completes commands in a shell; raises KeyError for another one."""
    topics = [topic for topic in TOPICS if topic not in commands]
    return COMPLETIONS[shell].format(
        commands=" ".join(commands), topics=" ".join(topics), services=" ".join(services)
    )
