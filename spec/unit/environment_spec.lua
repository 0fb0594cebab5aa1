-- environment_spec.lua: settings that nobody reads are named: variables of the environment that look like flowlua's by flowlua doctor, and
-- fields that a script gives flow or one of its modules by an error.
local support = require "spec.support.init"
local flow = require "flow"
local environment = require "flow.cli.environment"

describe("the environment", function()
  it("has no variable that sources ask for and the list lacks, nor the other way round", function()
    local asked, known = {}, {}
    local text = support.run([[grep -rhoE '"FLOW(LUA)?_[A-Z0-9_]+"' lua core bindings kernels --include=*.lua --include=*.c --include=*.h \
      --exclude=environment.lua]])
    for name in text:gmatch('"([%u%d_]+)"') do asked[name] = true end
    for _, name in ipairs(environment.NAMES) do known[name] = true end
    assert.same(known, asked)
  end)

  it("is looked at by flowlua doctor", function()
    local output = support.run("FLOW_THREDS=3 FLOW_ISA= " .. support.program .. " doctor")
    assert.truthy(output:find('flowlua does not read the variable FLOW_THREDS; did you mean "FLOW_THREADS"?', 1, true), output)
    assert.falsy(output:find("variable FLOW_ISA", 1, true), output)
  end)
end)

describe("a field that a script gives a module", function()
  it("is refused where it is a plain value that nobody reads, with the name that was meant", function()
    for text, wanted in pairs {
      ["config.thredas = 3"] = 'flow.config has no field "thredas" that could be set: call flow.config.set_threads(...)',
      ["config.precision = 'exact'"] = 'flow.config has no field "precision" that could be set: call flow.config.set_precision(...)',
      ["data.AUTOTUN = 1"] = 'flow.data has no field "AUTOTUN" that could be set; did you mean "AUTOTUNE"?',
      ["models.deterministic = true"] = 'flow.models has no field "deterministic" that could be set',
      ["thredas = 3"] = 'flow has no field "thredas" that could be set',
    } do
      local f = assert(loadstring("require('flow')." .. text, "@environment_spec.lua"))
      local message = support.message_of(f)
      assert.truthy(message and message:find(wanted, 1, true), text .. ": " .. tostring(message))
    end
  end)

  it("may be a function or a class", function()
    flow.callbacks.Mine = flow.callbacks.Callback:extend "Mine"
    flow.my_function = function() return 3 end
    assert.equal(3, flow.my_function())
    assert.equal("Mine", flow.callbacks.Mine.name)
  end)
end)
