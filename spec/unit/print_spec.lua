-- print_spec.lua: flow.print prints in every run of what is traced, as tf.print does.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

-- The lines that f() prints.
local function lines_of(f)
  local heard = {}
  flow.log.sink = function(level, text) heard[#heard + 1] = level == "print" and text:gsub("\n$", "") or nil end
  local ok, problem = pcall(f)
  flow.log.sink = nil
  if not ok then error(problem, 0) end
  return heard
end

-- The values of a tensor, as print(x) shows them after its first line.
local function text(x) return (tostring(x):gsub("^[^\n]*\n", ""):gsub("%.$", "")) end

describe("flow.print", function()
  it("prints values of all kinds", function()
    local x = flow.tensor { 1, 2 }
    assert.same({ "x [1. 2.] 3 nil true { 1, a = \"b\" }", "0.5" }, lines_of(function()
      flow.print("x", x, 3, nil, true, { 1, a = "b" })
      flow.print(flow.tensor(0.5))
    end))
  end)

  it("prints in each run of a traced function, in the order of its calls, also where the function returns nothing", function()
    local traces = 0
    local f = flow.fn(function(x)
      traces = traces + 1
      flow.print("before", x, { x:sum() })
      flow.print("after", x + 1)
    end)
    local first, second = flow.tensor { 1, 2 }, flow.tensor { 5, 7, 9 }
    assert.same({
      "before " .. text(first) .. " { " .. text(first:sum()) .. " }", "after " .. text(first + 1),
      "before " .. text(second) .. " { " .. text(second:sum()) .. " }", "after " .. text(second + 1),
    }, lines_of(function()
      f(first)
      f(second)
    end))
    assert.equal(1, traces)
  end)

  it("prints what a variable is when it is called", function()
    local v = flow.Variable(flow.tensor(1))
    local step = flow.fn(function()
      flow.print(v)
      v:assign_add(flow.tensor(1))
      flow.print(v)
    end)
    local one, two, three = text(flow.tensor(1)), text(flow.tensor(2)), text(flow.tensor(3))
    assert.same({ one, two, two, three }, lines_of(function()
      step()
      step()
    end))
  end)

  it("prints what a tape recorded inside a traced function, and what a layer of it computes", function()
    local Shown = layers.Layer:extend "Shown"
    function Shown:call(x)
      flow.print("shown", x)
      return x * 2
    end
    local layer = Shown()
    local f = flow.fn(function(x)
      local tape = flow.GradientTape()
      tape:watch(x)
      local y = tape:record(function() return layer(x):sum() end)
      local gradient = tape:gradient(y, x)
      flow.print(gradient)
      return gradient
    end)
    local x = flow.tensor { 1, 2 }
    assert.same({ "shown " .. text(x), text(x * 0 + 2) }, lines_of(function() f(x) end))
    assert.same({ "shown " .. text(x), text(x * 0 + 2) }, lines_of(function() f(x) end))
  end)

  it("says nothing while shapes of symbolic tensors are found", function()
    local Shown = layers.Layer:extend "ShownOnce"
    function Shown:call(x)
      flow.print("shown", x)
      return x * 2
    end
    assert.same({}, lines_of(function() Shown()(flow.Input { 2 }) end))
  end)

  it("prints in each round of a loop of a traced function, which then stays Lua", function()
    local f = flow.fn(function(x)
      return flow.while_loop(function(v) return v:lt(8) end, function(v)
        flow.print(v)
        return v * 2
      end, x, 10)
    end)
    local rounds = { text(flow.tensor(2)), text(flow.tensor(4)) }
    for _ = 1, 2 do assert.same(rounds, lines_of(function() assert.equal(8, f(flow.tensor(2)):item()) end)) end
  end)

  it("prints each element of a map", function()
    local dataset = flow.data.Dataset.range(3):map(function(x)
      flow.print("element", x)
      return x + 1
    end)
    local sum = 0
    local lines = lines_of(function()
      for x in dataset:iter() do sum = sum + x:item() end
    end)
    assert.equal(6, sum)
    assert.same({ "element 0", "element 1", "element 2" }, { unpack(lines, #lines - 2) })
  end)

  it("prints in steps that run eagerly, and says so of others", function()
    local Shown = flow.Model:extend "ShownStep"
    function Shown:train_step(data)
      local loss = data[1]:sum()
      flow.print("loss", loss)
      return { loss = loss }
    end
    local model = Shown()
    model:compile { optimizer = "sgd" }
    local message = support.message_of(function() model:fit(flow.ones { 4, 1 }, flow.ones { 4, 1 }, { verbose = 0 }) end)
    assert.truthy(message:find("flow.print", 1, true) and message:find("run_eagerly = true", 1, true), message)
    model:compile { optimizer = "sgd", run_eagerly = true }
    local lines = lines_of(function() model:fit(flow.ones { 4, 1 }, flow.ones { 4, 1 }, { verbose = 0 }) end)
    assert.same({ "loss " .. text(flow.tensor(4)) }, lines)
  end)
end)
