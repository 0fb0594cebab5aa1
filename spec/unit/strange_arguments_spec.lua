-- strange_arguments_spec.lua: every function and class of the reference with values that none is made for, in each place: a table that
-- contains itself, a coroutine, an object of LuaJIT's. What refuses them says so at the caller's line; nothing runs for ever, and no
-- message is one of Lua's about a line of the library.
local support = require "spec.support.init"
local ffi = require "ffi"
local flow = require "flow"
local message_of = support.message_of

jit.off()      -- compiled code calls no hooks
local reference = require "flow.reference"
reference.flow = flow

local first, named = {}, {}
first[1], named.a = first, named
local STRANGE = { { "a table that contains itself", first }, { "one by name", named }, { "a coroutine", coroutine.create(print) },
                  { "an object of C", ffi.new("int[2]") } }

-- What does not come back, changes the process, or reaches out of it.
local OUTSIDE = { "rmtree", "remove", "^flow%.keras", "repl$", "exit", "preempt", "threads", "help$", "Cluster", "MultiWorker",
                  "ParameterServer", "Sidecar", "job", "board", "launch", "plot", "flow.log" }
local function is_tried(item)
  if not item.f or item.kind == "method" then return false end
  for _, pattern in ipairs(OUTSIDE) do
    if item.name:find(pattern) then return false end
  end
  return true
end

-- The message of a call, false where it went well. A walk without an end is stopped.
local function message(f, ...)
  local rounds = 0
  debug.sethook(function()
    rounds = rounds + 1
    if rounds > 100 then error("it has no end", 0) end
  end, "", 1000000)
  local arguments, count = { ... }, select("#", ...)
  local ok, problem = pcall(function() return (f(unpack(arguments, 1, count))) end)
  debug.sethook()
  return not ok and tostring(problem)
end

describe("strange arguments", function()
  it("are refused by every function, in the library's words and at the caller's line", function()
    local x, tried, problems = flow.ones { 2, 3 }, 0, {}
    for _, item in ipairs(reference.all()) do
      for place = 1, is_tried(item) and 3 or 0 do
        for _, strange in ipairs(STRANGE) do
          local given = { x, x, x }
          given[place] = strange[2]
          local text = message(item.f, unpack(given, 1, place))
          tried = tried + 1
          if text and (text:find("lua/flow/", 1, true) or text:find("attempt to", 1, true) or text:find("overflow", 1, true)
            or text:find("it has no end", 1, true)) then
            problems[#problems + 1] = ("%s, %s at place %d: %s"):format(item.name, strange[1], place, text)
          end
        end
      end
    end
    assert.is_true(tried > 6000, tried)
    assert.same({}, problems)
  end)

  it("are named by what the sweep does not reach", function()
    local layer = flow.layers.Dense(2)
    layer(flow.ones { 2, 3 })
    assert.equal(layer.name .. ": call() takes the inputs, and options such as { training = true }, got a thread",
      message_of(function() layer:call(flow.ones { 2, 3 }, STRANGE[3][2]) end))
    assert.matches("compute_output_shape() takes shapes", message_of(function() layer:compute_output_shape(3, { 1 }) end), 1, true)
    assert.matches("does a table contain itself?", message_of(function() layer:compute_output_shape(named) end), 1, true)
    assert.matches("does a table contain itself?", message_of(function() flow.GradientTape():watch(first) end), 1, true)
    assert.matches("initializer is a name such as", message_of(function() flow.metrics.Mean():add_weight { initializer = {} } end), 1, true)
    assert.matches("name is a string, got a table", message_of(function() flow.metrics.Mean():add_weight { name = {} } end), 1, true)
    assert.equal("flow.log.print takes a text, and what is formatted into it, got nil", message_of(function() flow.log.print() end))
    assert.matches('flow.log.info: the text "%d" does not fit', message_of(function() flow.log.info("%d", "a") end), 1, true)
    for name, class in pairs { Layer = flow.layers.Layer, Loss = flow.losses.Loss, Metric = flow.metrics.Metric,
      LearningRateSchedule = flow.optimizers.schedules.LearningRateSchedule, PyDataset = flow.utils.PyDataset } do
      assert.equal(("%s is extended, not made: local My%s = %s:extend(\"My%s\")"):format(name, name, name, name),
        message_of(function() class() end))
    end
  end)

  it("are named where they are entries of lists, and in the hooks of a History", function()
    local columns = flow.ones { 1, 8, 9 }
    for text, f in pairs {
      ["flow.fold: an output size is a whole number from 1, got a table"] = function() flow.fold(columns, { { 1 }, 4 }, 2) end,
      ["flow.fold: a stride is a whole number from 1, got the number 0"] = function() flow.fold(columns, 4, 2, { stride = 0 }) end,
      ["flow.unfold: a padding has 1 entries, expected 2"] = function()
        flow.unfold(flow.ones { 1, 2, 4, 4 }, 2, { padding = { 1 } })
      end,
      ['flow.slice: entry 1 of the shape is the string "a", expected a whole number from 0, or -1 for all that follow'] = function()
        flow.slice(flow.ones { 3, 3 }, { 2, 1 }, { "a", 2 })
      end,
      ["flow.image.random_crop: a size is a whole number from 0, got a table"] = function()
        flow.image.random_crop(flow.zeros { 4, 6, 3 }, { 2, {}, 3 })
      end,
      ["flow.args: argument 1 is a table, expected a text"] = function() flow.args({ epochs = 3 }, { {}, "5" }) end,
      ["flow.args: arguments is a list, got a function"] = function() flow.args({ epochs = 3 }, print) end,
      ["model:plot takes a model, got the number -1"] = function() flow.plot.model(-1, "m.svg") end,
      ["map: expected a function, got a table"] = function() flow.data.Dataset.from_tensor_slices({ "a" }):map {} end,
      ["filter: expected a function, got a table"] = function() flow.data.Dataset.from_tensor_slices({ "a" }):filter {} end,
      ["STFT: dimension 1 of a shape is a whole number from 0, got the number 1e+300"] = function()
        flow.initializers.STFT() { 1e300, 1, 33 }
      end,
      ["flow.Model: outputs: the value is nested more than 800 deep; does a table contain itself?"] = function()
        flow.Model { inputs = flow.Input { 2 }, outputs = first }
      end,
      ['History:on_epoch_end takes the number of an epoch and a table of its values, got the string "a"'] = function()
        flow.callbacks.History():on_epoch_end("a", {})
      end,
      ["History:set_state: history is a table, got the number 3"] = function()
        flow.callbacks.History():set_state { history = 3, epoch = { 0 } }
      end,
      ["History:set_state: loss is a table, got the number 1"] = function()
        flow.callbacks.History():set_state { history = { loss = 1 }, epoch = { 0 } }
      end,
    } do
      assert.equal(text, message_of(f))
    end
    assert.matches("out of memory", message_of(function() flow.initializers.STFT() { 2 ^ 40, 1, 33 } end), 1, true)
  end)

  it("may be initializers of a metric's variables, as of a layer's", function()
    local count = flow.metrics.Mean():add_weight { name = "count", shape = { 2 }, initializer = flow.initializers.Constant(3) }
    assert.same({ 3, 3 }, count:value():totable())
  end)
end)
