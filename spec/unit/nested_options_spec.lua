-- nested_options_spec.lua: options that are lists of lists or hold nulls: in constructors, in Keras' configs, in what they compute.
local support = require "spec.support.init"
local flow = require "flow"
local model_files = require "spec.support.model_files"
local json = require "flow.json"
local message_of = support.message_of
local layers = flow.layers

local null = json.null

--- The layer of a config as a file has it.
local function read(class_name, config, shape)
  config.name = config.name or "layer"
  shape = shape or { 4, 6, 2 }
  local entry = { class_name = "Sequential", config = { name = "s", layers = json.list {
    { class_name = "InputLayer", config = { name = "i", batch_shape = json.list { null, unpack(shape) }, dtype = "float32" } },
    { class_name = class_name, config = config } } } }
  return flow.models.model_from_json(json.encode(entry)).layers[1]
end

describe("lists of lists", function()
  it("come from files as they stand there", function()
    local config = read("ZeroPadding2D", { padding = { { 1, 2 }, { 3, 0 } } }):get_config()
    assert.same({ { 1, 2 }, { 3, 0 } }, config.padding)
    config = read("Cropping2D", { cropping = { { 1, 0 }, { 2, 1 } } }):get_config()
    assert.same({ { 1, 0 }, { 2, 1 } }, config.cropping)
    config = read("Normalization", { mean = { { { { 1, 2 } } } }, variance = { { { { 4, 9 } } } } }):get_config()
    assert.same({ { { { 1, 2 } } } }, config.mean)
  end)

  it("come from constructors as Keras takes them", function()
    local x = flow.ones { 1, 4, 6, 3 }
    local function made(layer, shape)
      assert.same(shape, layer(x).shape)
      return layer:get_config()
    end
    assert.same({ { 1, 0 }, { 2, 1 } }, made(layers.ZeroPadding2D { { 1, 0 }, { 2, 1 } }, { 1, 5, 9, 3 }).padding)
    assert.same({ { 1, 0 }, { 2, 1 } }, made(layers.ZeroPadding2D { padding = { { 1, 0 }, { 2, 1 } } }, { 1, 5, 9, 3 }).padding)
    assert.same({ { 1, 2 }, { 0, 3 } }, made(layers.Cropping2D({ { 1, 2 }, { 0, 3 } }), { 1, 1, 3, 3 }).cropping)
    assert.same({ { { 1, 2, 3 } } }, made(layers.Rescaling { scale = { { { 1, 2, 3 } } } }, x.shape).scale)
    assert.same({ { 1 }, { 2 }, { 3 }, { 4 }, { 5 }, { 6 } },
      made(layers.Rescaling { scale = 1, offset = { { 1 }, { 2 }, { 3 }, { 4 }, { 5 }, { 6 } } }, x.shape).offset)
    local model = flow.Sequential { layers.Input { 4, 6, 3 }, layers.ZeroPadding2D { { 1, 0 }, { 2, 1 } },
      layers.Rescaling { scale = { { { 1, 2, 3 } } }, offset = { { { 1 } } } }, layers.Cropping2D { { 1, 2 }, { 0, 3 } } }
    model_files.assert_returns(model, { x })
  end)

  it("of constructors that do not fit are errors that say what was found", function()
    local function refused(padding, part)
      local problem = message_of(function() layers.ZeroPadding2D { padding = padding } end)
      assert.truthy(problem:find("ZeroPadding2D: padding" .. part, 1, true), problem)
    end
    refused({ { 1, 2 } }, " has 2 numbers, {{1, 2}}, expected an integer, {height, width} or {{top, bottom}, {left, right}}")
    refused({ { { 1, 2 }, { 1, 2 } } }, " has 4 numbers, {{{1, 2}, {1, 2}}}")
    refused({ { 1, 2 }, { 3 } }, ": its lists have 2 and 1 entries, expected equal lengths")
    refused({ { 1, 2 }, 3 }, ": entry 2 is the number 3, the list mixes numbers and lists")
    refused({ 1, { 2, 3 } }, ": entry 2 is a table, the list mixes numbers and lists")
    refused({ { 1, 2 }, { 3, "x" } }, ': entry 2 is the string "x", expected a number')
    local deep = { 1 }
    for _ = 1, 40 do deep = { deep } end
    refused(deep, ": its lists are nested more than 8 deep")
  end)

  it("are arrays of NumPy as well", function()
    local array = { class_name = "__numpy__", config = { value = { 0.5, 2 }, dtype = "float32" } }
    assert.same({ 0.5, 2 }, read("Rescaling", { scale = array }):get_config().scale)
  end)

  it("that do not fit are errors that say what was found", function()
    local function refused(class_name, config, part)
      local problem = message_of(function() read(class_name, config) end)
      assert.truthy(problem:find(part, 1, true), problem)
    end
    refused("ZeroPadding2D", { padding = { { 1, 2 }, { 3 } } }, 'the lists inside "padding" have 2 and 1 entries')
    refused("ZeroPadding2D", { padding = { { 1, 2 }, 3 } }, '"padding" mixes numbers and lists')
    refused("ZeroPadding2D", { padding = { 3, { 1, 2 } } }, '"padding" mixes numbers and lists')
    refused("ZeroPadding2D", { padding = { { 1, 2 } } }, "padding has 2 numbers, {{1, 2}}, expected an integer, {height, width} or")
    refused("ZeroPadding2D", { padding = { { 1, null }, { 1, 1 } } }, "padding holds")
    refused("ZeroPadding2D", { padding = { { 1, "a" }, { 1, 1 } } }, "not a number, null or a list")
    refused("Conv2D", { filters = 1, kernel_size = { { 1, 2 } } }, "must be an integer or a list of two integers, found {{1, 2}}")
    refused("Conv2D", { filters = 1, kernel_size = { 1, null } }, "must be an integer or a list of two integers, found {1, null}")
    refused("Rescaling", { scale = { 1, null } }, "scale must be a number or a list of numbers, found {1, null}")
    refused("Dropout", { rate = 0.5, noise_shape = { null, 0 } }, "noise_shape must be a list of positive integers")
    local deep = { 1 }
    for _ = 1, 40 do deep = { deep } end
    refused("Rescaling", { scale = deep }, "nested more than 8 deep")
  end)
end)

describe("Rescaling", function()
  it("takes numbers for each channel, and lists that broadcast", function()
    local x = flow.arange(24):to("float32"):reshape { 1, 2, 3, 4 }
    local cases = { { { 1, 2, 3, 4 }, { 0, 10, 20, 30 } }, { { { 1 }, { 2 }, { 3 } }, 5 }, { 2, { 1, 0, 0, 0 } } }
    for _, case in ipairs(cases) do
      local scale, offset = case[1], case[2]
      local layer = read("Rescaling", { scale = scale, offset = offset }, { 2, 3, 4 })
      local model = flow.Sequential { layers.Input { 2, 3, 4 }, layer }
      local found = model:predict(x, { verbose = 0 }):totable()
      local function at(list, row, channel)
        if type(list) == "number" then return list end
        return type(list[1]) == "table" and list[row][1] or list[channel]
      end
      for h = 1, 2 do
        for w = 1, 3 do
          for c = 1, 4 do
            local value = (h - 1) * 12 + (w - 1) * 4 + c - 1
            assert.equal(value * at(scale, w, c) + at(offset, w, c), found[1][h][w][c])
          end
        end
      end
      model_files.assert_returns(model, { x })
    end
  end)
end)

describe("Dropout's noise_shape", function()
  local shapes = { { -1, 1, 1, 3 }, { -1, 4, 1, 1 }, { 1, -1, -1, 3 }, { 1, 1, 5, 1 }, { 5, 3 }, { -1, -1, -1, -1 } }
  local n = { 6, 4, 5, 3 }

  -- Fails unless the mask is 0 or 1 / (1 - rate) and the same along the axes of size 1; returns the share of what is kept.
  local function check_mask(mask, shape, rate)
    local kept, count, first = 0, 0, {}
    for a = 1, n[1] do
      for b = 1, n[2] do
        for c = 1, n[3] do
          for d = 1, n[4] do
            local value = mask[a][b][c][d]
            assert.truthy(value == 0 or math.abs(value - 1 / (1 - rate)) < 1e-6)
            local at, key = { a, b, c, d }, {}
            for axis = 1, 4 do
              local size = shape[axis - (4 - #shape)]
              key[axis] = (size == nil or size == 1) and 1 or at[axis]
            end
            key = table.concat(key, ",")
            if first[key] == nil then
              first[key], count = value, count + 1
              kept = kept + (value ~= 0 and 1 or 0)
            end
            assert.equal(first[key], value)
          end
        end
      end
    end
    return kept, count
  end

  for _, mode in ipairs { "eager", "traced" } do
    it("drops what it names together, " .. mode, function()
      for i, shape in ipairs(shapes) do
        for _, rate in ipairs { 0.25, 0.5 } do
          local layer = layers.Dropout(rate, { noise_shape = shape, seed = i, name = "drop" })
          local call = function(x) return layer(x, { training = true }) end
          if mode == "traced" then call = flow.fn(call) end
          local kept, count = 0, 0
          for _ = 1, 40 do
            local k, c = check_mask(call(flow.ones(n)):totable(), shape, rate)
            kept, count = kept + k, count + c
          end
          local deviation = math.sqrt(rate * (1 - rate) / count)
          assert.truthy(math.abs(kept / count - (1 - rate)) < 5 * deviation, ("%d of %d kept at rate %g"):format(kept, count, rate))
        end
      end
    end)
  end

  it("is the identity in inference, and all zero at rate 1", function()
    local x = flow.random.normal(n, { seed = 1 })
    for _, shape in ipairs(shapes) do
      assert.same(x:totable(), layers.Dropout(0.5, { noise_shape = shape })(x):totable())
      assert.equal(0, layers.Dropout(1, { noise_shape = shape })(x, { training = true }):abs():max():item())
    end
  end)

  it("has the gradient of its mask", function()
    for _, shape in ipairs(shapes) do
      local layer, x, y = layers.Dropout(0.5, { noise_shape = shape }), flow.Variable(flow.ones(n)), nil
      local tape = flow.GradientTape()
      local sum = tape:record(function()
        y = layer(x:value(), { training = true })
        return y:sum()
      end)
      assert.same(y:totable(), tape:gradient(sum, x):totable())
    end
  end)

  it("goes into files with null for the input's size", function()
    local x = flow.random.normal(n, { seed = 1 })
    for _, shape in ipairs(shapes) do
      local model = flow.Sequential { layers.Input { 4, 5, 3 }, layers.Dropout(0.5, { noise_shape = shape }) }
      local again = model_files.assert_returns(model, { x })
      local written = again.layers[1]:get_config().noise_shape
      for i, size in ipairs(shape) do assert.equal(size == -1 and null or size, written[i]) end
    end
  end)

  it("that does not fit the input is an error", function()
    local problem = message_of(function() layers.Dropout(0.5, { noise_shape = { 3, 1, 1, 1 } })(flow.ones(n), { training = true }) end)
    assert.truthy(problem:find("noise_shape has 4 entries that do not fit the input {6, 4, 5, 3}", 1, true), problem)
    problem = message_of(function() layers.Dropout(0.5, { noise_shape = { 1, 1, 1, 1, 1 } })(flow.ones(n), { training = true }) end)
    assert.truthy(problem:find("noise_shape has 5 entries", 1, true), problem)
  end)
end)
