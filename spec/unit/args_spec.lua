-- args_spec.lua: a script's command line by defaults.
local support = require "spec.support.init"
local args = require "flow.command_line"
local message_of = support.message_of

describe("flow.args", function()
  local defaults = { epochs = 3, job_dir = "", rate = 0.1, verbose = false, cache = true }

  it("gives the defaults", function()
    assert.same(defaults, args.parse(defaults, {}))
  end)

  it("reads values by their default's type", function()
    local result = args.parse(defaults, { "--epochs", "5", "--rate=1e-3", "--job-dir=/tmp/a=b", "--verbose", "--no-cache" })
    assert.same({ epochs = 5, rate = 1e-3, job_dir = "/tmp/a=b", verbose = true, cache = false }, result)
    assert.same(5, args.parse(defaults, { "--epochs=5" }).epochs)
    assert.is_false(args.parse(defaults, { "--cache=false" }).cache)
    assert.equal("-1", args.parse(defaults, { "--job_dir", "-1" }).job_dir)
    assert.equal("a", args.parse({ ["job-dir"] = "" }, { "--job_dir", "a" })["job-dir"])
  end)

  it("keeps the other arguments in order, and all after --", function()
    local result = args.parse(defaults, { "a", "--epochs", "1", "b", "--", "--epochs", "2" })
    assert.same({ "a", "b", "--epochs", "2" }, { unpack(result) })
    assert.equal(1, result.epochs)
  end)

  it("names what is wrong", function()
    assert.equal('unknown option --epoch; did you mean "epochs"?', message_of(function() args.parse(defaults, { "--epoch", "1" }) end))
    assert.equal('--epochs takes a number, got "many"', message_of(function() args.parse(defaults, { "--epochs", "many" }) end))
    assert.equal("--epochs needs a value, e.g. --epochs=3", message_of(function() args.parse(defaults, { "--epochs" }) end))
    assert.equal('--verbose is true or false, got "perhaps"', message_of(function() args.parse(defaults, { "--verbose=perhaps" }) end))
    assert.equal('flow.args: the default of "x" is a number, a string or a boolean, got a table',
      message_of(function() args.parse({ x = {} }, {}) end))
  end)

  it("ends the script with the usage for --help", function()
    local ok, exit = pcall(args.parse, defaults, { [0] = "train.lua", "--help" })
    assert.is_false(ok)
    assert.equal(0, exit.code)
    local text = tostring(exit)
    assert.truthy(text:find("^Usage: train%.lua %[options%]\n"))
    assert.truthy(text:find("--epochs NUMBER +default: 3\n"))
    assert.truthy(text:find("--no%-cache +default: on\n"))
  end)
end)
