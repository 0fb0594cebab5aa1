-- checkpoint_reader_spec.lua: what is in a checkpoint is told and read without the objects that wrote it; checkpoints hold checkpoints.
local support = require "spec.support.init"
local flow = require "flow"

local message_of = support.message_of
local function has(text, part) assert.truthy(tostring(text):find(part, 1, true), tostring(text) .. "\nlacks: " .. part) end

local function written(folder)
  local model = flow.Sequential { flow.layers.Input { 3 }, flow.layers.Dense(2) }
  local step = flow.Variable(flow.tensor(5, { dtype = "int64" }))
  return flow.train.Checkpoint({ model = model, step = step, plain = { epoch = 3 } }):save(folder .. "/ckpt"), model
end

describe("flow.train", function()
  it("lists what a checkpoint holds, and reads it by name", function()
    local folder = support.folder()
    local path, model = written(folder)
    for _, place in ipairs { path, folder } do
      local names = {}
      for i, entry in ipairs(flow.train.list_variables(place)) do names[i] = entry[1] .. " " .. table.concat(entry[2], "x") end
      assert.same({ "model/layers/0/bias 2", "model/layers/0/kernel 3x2", "save_counter ", "step " }, names)
      assert.same(model.layers[1].kernel:totable(), flow.train.load_variable(place, "model/layers/0/kernel"):totable())
      local reader = flow.train.load_checkpoint(place)
      assert.is_true(reader:has_tensor "step")
      assert.is_false(reader:has_tensor "stop")
      assert.equal(5, tonumber(reader:get_tensor("step"):item()))
      assert.equal("int64", reader:get_variable_to_dtype_map().step)
      assert.same({ 3, 2 }, reader:get_variable_to_shape_map()["model/layers/0/kernel"])
    end
    has(message_of(function() flow.train.load_variable(path, "stap") end), 'has no tensor "stap"; did you mean "step"?')
    has(message_of(function() flow.train.list_variables(support.folder()) end), "has no checkpoint")
    has(message_of(function() flow.train.load_checkpoint(folder .. "/none-1") end), "none-1")
  end)

  it("saves and restores checkpoints inside of checkpoints, with their counters", function()
    local folder = support.folder()
    local function made(a, b)
      local inner = flow.train.Checkpoint { a = flow.Variable(a) }
      return flow.train.Checkpoint { inner = inner, b = flow.Variable(b) }, inner
    end
    local outer, inner = made(1, 2)
    inner:save(folder .. "/inner")
    local path = outer:save(folder .. "/outer")
    assert.equal(1, flow.train.load_variable(path, "inner/a"):item())
    local again, other = made(7, 8)
    again:restore(path):assert_consumed()
    assert.equal(1, other.a:item())
    assert.equal(2, again.b:item())
    assert.equal(1, tonumber(other.save_counter:item()))
    local alone = flow.train.Checkpoint { a = flow.Variable(9) }
    alone:restore(folder .. "/inner-1"):assert_consumed()
    assert.equal(1, alone.a:item())
  end)
end)
