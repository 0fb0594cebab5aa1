-- utils_spec.lua: flow.utils gives what keras.utils gives (utils.py).
local support = require "spec.support.init"
local flow = require "flow"
local expected = require "spec.golden.utils"

local utils, message_of = flow.utils, support.message_of

local function flat(tensor) return tensor:to("float32"):reshape { -1 }:totable() end

local function assert_equal(reference, found)
  assert.same(reference.shape, { unpack(found.shape) })
  local values = found.size > 0 and flat(found) or {}
  for i, value in ipairs(reference.values) do assert.is_true(math.abs(value - values[i]) <= 1e-6, i) end
end

describe("flow.utils", function()
  for _, name in ipairs { "to_categorical", "pad_sequences", "normalize" } do
    it("has " .. name .. " as Keras has it", function()
      for _, case in ipairs(expected[name]) do assert_equal(case[3], utils[name](case[1], case[2])) end
    end)
  end

  it("splits data sets as Keras does", function()
    for _, case in ipairs(expected.split_dataset) do
      for _, source in ipairs { flow.data.Dataset.range(case[1]), flow.arange(0, case[1]) } do
        local parts = { utils.split_dataset(source, case[2]) }
        for side = 1, 2 do
          local found = {}
          for x in parts[side]:iter() do found[#found + 1] = x:item() end
          assert.same(case[3][side].values, found)
        end
      end
    end
  end)

  it("splits what it shuffled into parts that have nothing in common", function()
    local source = flow.data.Dataset.range(20):filter(function(x) return x:ne(3) end)
    local left, right = utils.split_dataset(source, 0.5, { shuffle = true, seed = 4 })
    local seen, count = {}, 0
    for _, part in ipairs { left, right } do
      for x in part:iter() do
        assert.is_nil(seen[x:item()])
        seen[x:item()], count = true, count + 1
      end
    end
    assert.equal(19, count)
  end)

  it("unpacks and packs what a step gets", function()
    local x, y, weight = flow.ones { 1 }, flow.ones { 2 }, flow.ones { 3 }
    assert.same({ x }, { utils.unpack_x_y_sample_weight(x) })
    assert.same({ x, y }, { utils.unpack_x_y_sample_weight { x, y } })
    assert.same({ x, y, weight }, { utils.unpack_x_y_sample_weight { x, y, weight } })
    assert.equal(x, utils.pack_x_y_sample_weight(x))
    assert.same({ x, y }, utils.pack_x_y_sample_weight(x, y))
    assert.same({ { x, y } }, utils.pack_x_y_sample_weight { x, y })
  end)

  it("says what is wrong", function()
    for f, wanted in pairs {
      [function() utils.to_categorical({ 0, 3 }, 3) end] = "flow.utils.to_categorical: labels are from 0 to num_classes - 1 = 2, found 3",
      [function() utils.to_categorical { 1, -1 } end] = "flow.utils.to_categorical: labels are from 0 to classes - 1, found -1",
      [function() utils.pad_sequences { { 1 }, 2 } end] =
        "flow.utils.pad_sequences: sequence 2 is the number 2, expected a list or a tensor",
      [function() utils.pad_sequences { { { 1, 2 } }, { { 1 } } } end] =
        "flow.utils.pad_sequences: an entry of sequence 2 has the shape {1}, of sequence 1 {2}: expected equal ones",
      [function() utils.split_dataset(flow.data.Dataset.range(4)) end] =
        "flow.utils.split_dataset: left_size or right_size has to be given",
      [function() utils.split_dataset(flow.data.Dataset.range(4), 4) end] =
        "flow.utils.split_dataset: left_size is a whole number from 1 to 3, or a part between 0 and 1, got 4",
      [function() utils.split_dataset(flow.data.Dataset.range(4):repeat_(), 2) end] = "flow.utils.split_dataset: the data set has no end",
      [function() utils.unpack_x_y_sample_weight { 1, 2, 3, 4 } end] =
        "flow.utils.unpack_x_y_sample_weight: data is x, { x }, { x, y } or { x, y, sample_weight }, got a table",
    } do assert.equal(wanted, message_of(f)) end
  end)
end)

describe("flow.keras", function()
  it("finds at Keras' paths what flow has", function()
    local keras = flow.keras
    assert.equal(flow.layers.Dense, keras.layers.Dense)
    assert.equal(flow.Sequential, keras.Sequential)
    assert.equal(flow.optimizers.schedules.ExponentialDecay, keras.optimizers.schedules.ExponentialDecay)
    assert.equal(flow.utils, keras.utils)
    assert.equal(3, keras.ops.sum(flow.ones { 3 }):item())
    assert.equal(flow.image_dataset_from_directory, keras.preprocessing.image_dataset_from_directory)
    assert.equal(flow.layers.MaxPooling2D, keras.layers.MaxPool2D)
    assert.equal("float32", keras.backend.floatx())
    assert.equal('flow.keras has no "layer"; did you mean "layers"?', message_of(function() return keras.layer end))
    assert.equal('flow.keras.ops has no "nonsense"', message_of(function() return keras.ops.nonsense end))
  end)

  it("has options of data sets, file functions and shapes by their TensorFlow names", function()
    local options = flow.data.Options()
    options.experimental_distribute.auto_shard_policy = flow.data.experimental.AutoShardPolicy.OFF
    options.deterministic = false
    local ds = flow.data.Dataset.range(3):with_options(options)
    assert.same({ auto_shard_policy = "OFF", deterministic = false }, ds:options())
    options.experimental_distribute.auto_shard = 1
    assert.truthy(message_of(function() ds:with_options(options) end):find('unknown option "auto_shard"', 1, true))
    assert.truthy(message_of(function() options.threading = 1 end):find('flow.data.Options has no "threading"', 1, true))
    assert.same({ -1, 4, 5 }, { unpack(flow.layers.InputLayer { input_shape = { 4, 5 } }.output.shape) })
    local path = support.folder() .. "/file.txt"
    local file = flow.io.gfile.GFile(path, "w")
    file:write "text"
    file:close()
    assert.is_true(flow.io.gfile.exists(path))
    flow.io.gfile.remove(path)
    assert.is_false(flow.io.exists(path))
    assert.truthy(message_of(function() flow.io.gfile.GFile(path) end):find("flow.io.gfile.GFile: " .. path, 1, true))
  end)
end)
