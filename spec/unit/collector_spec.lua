-- collector_spec.lua: no tensor is freed while a call still uses it. spec/support/collector_stress.lua runs pieces of programs in a process
-- of their own, with whole collections at every allocation, in interpreted and in compiled code, and before every call of the library.
local support = require "spec.support.init"
local missing = require("spec.support.emulated").missing()

local CASES = { "ops", "elements", "variables", "gradients", "a traced function", "layers", "fit", "data sets", "checkpoints" }

local function check(device, mode, names)
  for _, name in ipairs(names or { "" }) do
    local text, code = support.run(("%s %q %s %s %s"):format(os.getenv "FLOW_LUA" or "luajit",
      support.root .. "spec/support/collector_stress.lua", device, mode, name == "" and name or ("%q"):format(name)))
    assert.equal(0, code, text)
    for _, case in ipairs(name == "" and CASES or { name }) do assert.truthy(text:find(case .. "\tsame", 1, true), text) end
  end
end

describe("the collector", function()
  it("takes no tensor that is used, at any allocation", function() check("cpu", "interpreted") end)
  it("takes no tensor that compiled code uses", function() check("cpu", "compiled") end)

  it("takes no tensor whose pointer was read for the call that comes", function() check("cpu", "hooked") end)

  it("takes no tensor that a device uses", function()
    if missing then return pending(missing) end
    check("gpu:0", "interpreted", { "variables", "gradients", "a traced function", "fit" })
    check("gpu:0", "hooked", { "variables", "gradients" })
  end)
end)
