-- shared_model_spec.lua: how much memory a model takes: in a server with eight threads, with eight Lua states, and where it is replaced by
-- a newer one. The sizes are those of the pages that a process holds, which other processes do not change.
local support = require "spec.support.init"
local program = support.program:match("^(.*/)") .. "shared_model"
local MEGABYTES = 1000 -- KB

-- 16.6 million parameters.
local MAKE = [[
  local flow = require "flow"
  local layers = flow.layers
  local model = flow.Sequential { layers.Input { 2048 }, layers.Dense(4096, { activation = "relu" }), layers.Dense(2000), layers.Dense(10) }
  model:compile { optimizer = "sgd", loss = "mse" }
  model:save((...))
]]

local SERVE = [[
  local flow = require "flow"
  local path = ...
  flow.config.set_threads(1)
  local model = flow.models.shared(path)
  local x = flow.random.uniform({ 3, 2048 }, { seed = 1 })
  return function()
    local y = model:predict(x)
    collectgarbage()
    local bits = {}
    for i, number in ipairs(y:reshape({ -1 }):totable()) do bits[i] = ("%a"):format(number) end
    return table.concat(bits, ",")
  end
]]

local RELOAD = [[
  local flow = require "flow"
  local path = ...
  local x = flow.ones { 3, 2048 }
  local function held()
    for line in io.lines("/proc/self/status") do
      local kilobytes = line:match("^VmRSS:%s+(%d+)")
      if kilobytes then return tonumber(kilobytes) end
    end
  end
  local function load()
    local model = flow.load_model(path)
    model:predict(x, { verbose = 0 })
    return model
  end
  local before = held()
  local model = load()
  print("loaded", held() - before)
  model:close()
  print("closed", held() - before)
  model = load()
  print("again", held() - before)
  local newer = load()
  print("both", held() - before)
  model:close()
  print("newer", held() - before)
  newer:close()
]]

describe("a model of 66 MB", function()
  local missing = os.getenv("FLOW_SANITIZED") and "sanitizers keep their own memory"
  local path

  setup(function()
    if missing then return end
    path = support.file("large.keras", "")
    support.run(("%q %s %s"):format(support.program, support.file("make.lua", MAKE), path))
  end)
  teardown(function() if path then os.remove(path) end end)

  it("takes less than 100 MB in a server whose eight threads predict with it", function()
    if missing then return pending(missing) end
    local text, code = support.run(("%q %s 8 5"):format(program, path))
    assert.equal(0, code, text)
    local held = tonumber(text:match("served (%d+) KB"))
    assert.truthy(held > 60 * MEGABYTES and held < 100 * MEGABYTES, text)
    assert.truthy(tonumber(text:match("loading (%d+) KB")) < 120 * MEGABYTES, text)      -- while its optimizer takes the weights over
  end)

  it("takes less than 100 MB in a server with a Lua state in each of eight threads", function()
    if missing then return pending(missing) end
    local states = support.program:match("^(.*/)") .. "shared_states"
    local text, code = support.run(("%q %s 8 %s"):format(states, path, support.file("serve.lua", SERVE)))
    assert.equal(0, code, text)
    local held = tonumber(text:match("held (%d+) KB"))
    assert.truthy(held > 60 * MEGABYTES and held < 100 * MEGABYTES, "held " .. held)
    local first, calls = text:match("bits (%S+)"), 0
    assert.truthy(#first > 100)
    for bits in text:gmatch "bits (%S+)" do
      calls = calls + 1
      assert.equal(first, bits)
    end
    assert.equal(12, calls)                       -- four of the states closed theirs before the others called again
  end)

  -- The 64 MB that were freed last are kept for what comes next, of the same sizes.
  it("leaves its memory to the one that replaces it", function()
    if missing then return pending(missing) end
    local text, code = support.run(("%q %s %s"):format(support.program, support.file("reload.lua", RELOAD), path))
    assert.equal(0, code, text)
    for name, most in pairs { loaded = 100, closed = 100, again = 100, both = 170, newer = 170 } do
      local held = tonumber(text:match(name .. "%s+(%-?%d+)"))
      assert.truthy(held < most * MEGABYTES, name .. "\n" .. text)
    end
  end)
end)
