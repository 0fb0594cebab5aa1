-- limits_spec.lua: under limits of the system (ulimit) messages say what was lacking, and what to do.
local support = require "spec.support.init"

-- What a script writes under a limit.
local function under(limit, code)
  if os.getenv "FLOW_SANITIZED" then return nil end      -- sanitizers take address space and files of their own
  return (support.run(("ulimit %s; %s %s"):format(limit, support.command, support.file("limited.lua", code))))
end

describe("without free file descriptors", function()
  for _, case in ipairs {
    { "a part of flow that is named first", "return flow.layers.Dense(2)", "flow.classes.loading" },
    { "a part of flow after others", "return flow.layers.Dense(2)", "flow.layers", "flow.random.normal { 2 }" },
    { "the check of arguments", "return flow.eye('two')", "flow.calls" },
  } do
    it(case[1] .. " is not said to be missing", function()
      local text = under("-n 40", ([[
        local flow = require "flow"
        local _ = %s
        local held, file = {}
        repeat
          file = io.open "/dev/null"
          held[#held + 1] = file
        until not file
        print(select(2, pcall(function() %s end)))]]):format(case[4] or "1", case[2]))
      if not text then return pending "not under sanitizers" end
      local wanted = case[3] .. " cannot be loaded: Too many open files: close some, or raise the limit (ulimit -n)\n"
      assert.truthy(text:find(("^[^\n]*limited.lua:%d+: "):format(8)) and text:find(wanted, 1, true), text)
    end)
  end
end)

describe("with little memory", function()
  it("tensors name the limit", function()
    local text = under("-v 250000", "require('flow').zeros { 1e8 }")
    if not text then return pending "not under sanitizers" end
    assert.truthy(text:find("out of memory: 400000000 bytes asked for", 1, true), text)
    assert.truthy(text:find("or raise the limit of 256000000 bytes that this process has (ulimit -v)", 1, true), text)
  end)

  it("a script whose own values are too large is told what to do", function()
    local text = under("-v 250000", "local list = {} for i = 1, 1e8 do list[i] = { i } end")
    if not text then return pending "not under sanitizers" end
    assert.truthy(text:find("not enough memory for the tables and strings of this script: keep numbers in tensors", 1, true), text)
  end)
end)
