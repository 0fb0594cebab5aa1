-- cli/usage.lua: what flowlua --help prints, and the commands; loaded when one is needed.

local USAGE = [=[
Usage: flowlua [options] [script.lua [arguments]]
       flowlua COMMAND [arguments]

  flowlua                   the interactive prompt; a script on standard input if that is not a terminal
  flowlua train.lua a b     runs a script with arg[1] = "a", arg[2] = "b"
  flowlua doctor            what this installation can do: version, CPU, devices, plugins
  flowlua help model:fit    what a function, a class or a method takes, with an example (help --help)
  flowlua summary m.keras   the layers of a saved model
  flowlua predict m.keras a.jpg b.png
                            what a saved classifier sees in pictures (--top 3, --classes a,b,c)
  flowlua board logs        a page with the curves, histograms and pictures of trainings (board --help)
  flowlua launch --workers 2 train.lua -- a b
                            a script as a cluster of several processes (launch --help)
  flowlua submit NAME --config config.yaml train.lua -- a b
                            checks a training job, writes it for a cluster, hands it over (submit --help)
  flowlua jobs status       what became of such jobs; jobs logs -f NAME, jobs cancel NAME
  flowlua scaling m.keras   what many workers can be expected to reach (scaling --help)
  flowlua bench             how fast this machine trains and predicts (bench --help)

  -e CODE     runs CODE
  -l MODULE   requires MODULE
  -m MODULE   runs a module as a script, found as require finds it
  -i          the interactive prompt after all that
  -v          the version
  -h, --help  this text
  --          ends the options
  -           a script on standard input]=]

-- Words that name a command when they are first: each is a module flow.cli.<word>, which returns f(host, arguments, program). options:
-- what it takes, for completion.
local commands = {
  doctor = { options = "" }, help = { options = "--man --completion --annotations" }, summary = { options = "" },
  predict = { options = "--top --classes" }, bench = { options = "--net --seconds --ops --op" },
  launch = { options = "--workers --parameter-servers --hosts --engine -m" }, submit = { options = "--config -m" },
  jobs = { options = "status logs cancel" }, board = { options = "--port --host" },
  scaling = { options = "--workers --batch --step-time --latency --bandwidth" },
}

return { usage = USAGE, commands = commands }
