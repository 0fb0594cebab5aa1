-- scaling_spec.lua: flowlua scaling: the table of what is given, and what it measures with two workers on this machine.
local support = require "spec.support.init"
local flow = require "flow"

local program = ("FLOWLUA_PATH=%slua timeout -k 5 100 %s scaling"):format(support.root, support.program)

local function saved()
  local path = support.file("empty", ""):match("^(.*)/") .. "/m.keras"
  local model = flow.Sequential { flow.layers.Input { 8, 8, 3 }, flow.layers.Conv2D(4, 3), flow.layers.GlobalAveragePooling2D(),
                                  flow.layers.Dense(300), flow.layers.Dense(100) }
  model:compile { optimizer = "adam", loss = "mse" }
  model:save(path)
  return path, model
end

describe("flowlua scaling", function()
  it("prints what the cost model says of what is given", function()
    local path, model = saved()
    local given = "--step-time 10 --latency 20 --bandwidth 1000 --overlap 0.5 --workers 8,4096 --workers-per-host 4"
    local text, code = support.run(("%s %s %s"):format(program, given, path))
    assert.equal(0, code, text)
    local wanted = flow.distribute.cost { model = model, step_seconds = 0.01, latency = 20e-6, bandwidth = 1e9, overlap = 0.5,
                                          workers = { 8, 4096 }, workers_per_host = 4 }
    local first = "a message: 20 us and 1000 MB/s; sums beside computing: 50 % of their speed (as given)\n"
    assert.equal(first .. tostring(wanted) .. "\n", text)
  end)

  it("measures what is not given", function()
    local text, code = support.run(("%s --seconds 0.2 --batch 4 --workers 16 %s"):format(program, saved()))
    assert.equal(0, code, text)
    local pattern = "^a message: [%d.e+-]+ us and [%d.e+]+ MB/s; sums beside computing: %d+ %% of their speed %(two workers here take "
      .. "[%d.]+ ms a step, one [%d.]+%)\n[^\n]* of gradients a step, [%d.]+ ms of computing\n[^\n]+\n +16 [^\n]+ %%\n$"
    assert.truthy(text:find(pattern), text)
  end)

  it("says what is wrong", function()
    local text, code = support.run(program)
    assert.truthy(code ~= 0 and text:find("which model?", 1, true), text)
    text, code = support.run(program .. " /nowhere/m.keras")
    assert.truthy(code ~= 0 and text:find("/nowhere/m.keras", 1, true), text)
    text, code = support.run(("%s --step-time 1 --latency 1 --bandwidth 1 --overlap 1 --workers 8,x %s"):format(program, (saved())))
    assert.truthy(code ~= 0 and text:find('entry 2 of workers is a whole number from 2, got the string "x"', 1, true), text)
    local wrong = { overlap = { "-1", "1.5", "x" }, ["step-time"] = { "0", "-3" }, latency = { "inf" }, bandwidth = { "0" } }
    for option, values in pairs(wrong) do
      for _, value in ipairs(values) do
        text, code = support.run(("%s --%s %s %s"):format(program, option, value, (saved())))
        local range = option == "overlap" and "from 0 to 1" or "above 0"
        assert.truthy(code ~= 0 and text:find(("--%s is a number %s, got %s"):format(option, range, value), 1, true), text)
      end
    end
    assert.truthy((support.run(program .. " --help")):find("Usage: flowlua scaling", 1, true))
  end)
end)
