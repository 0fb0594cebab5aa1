-- Poolings of infinities, NaN and equal elements: of all ranks, eagerly, traced, in a model and as ops the same values and gradients, and
-- padding never wins.
local flow = require "flow"
local layers = flow.layers

local INF, NAN = math.huge, 0 / 0
local PATTERNS = { { -INF }, { NAN }, { 2 }, { 1, NAN, -INF, INF, 0, -0.0, 3 }, { INF, -INF, 1 }, { 0, -0.0 } }

-- The elements as text, which tells -0 from 0 and compares NaN.
local function text(t)
  local list = t:reshape({ -1 }):totable()
  for i, value in ipairs(list) do list[i] = value == value and tostring(value) or "nan" end
  return table.concat(list, " ")
end

local function gradient(f, x)
  local tape = flow.GradientTape()
  tape:watch(x)
  local sum = tape:record(function() return f(x):sum() end)
  return tape:gradient(sum, x)
end

-- f(name of the layer, its options, an input of 2 rows of a pattern) for each setting.
local function each_setting(rank, f)
  for _, pattern in ipairs(PATTERNS) do
    for _, padding in ipairs { "valid", "same" } do
      for _, strides in ipairs { 1, 2 } do
        for _, channels in ipairs { 1, 3 } do
          local shape, values = { 2 }, {}
          for i = 1, rank do shape[1 + i] = 5 end
          shape[rank + 2] = channels
          for i = 1, 2 * 5 ^ rank * channels do values[i] = pattern[(i * 7 + math.floor(i / 5)) % #pattern + 1] end
          f({ pool_size = 2, strides = strides, padding = padding }, flow.tensor(values):reshape(shape), shape)
        end
      end
    end
  end
end

for rank = 1, 3 do
  for kind, op in pairs { Max = "max_pool", Average = "average_pool" } do
    local name = ("%sPooling%dD"):format(kind, rank)
    describe(name .. " of infinities, NaN and equal elements", function()
      it("is the same everywhere", function()
        each_setting(rank, function(options, x, shape)
          local layer = layers[name](options)
          local function by_op(v) return flow[op](v, 2, options.strides, options.padding) end
          local expected, slopes = text(layer(x)), text(gradient(layer, x))
          assert.equals(expected, text(flow.fn(function(v) return layer(v) end)(x)))
          assert.equals(expected, text(by_op(x)))
          local model = flow.Sequential { layers.Input { unpack(shape, 2) }, layers[name](options) }
          assert.equals(expected, text(model:predict(x, { verbose = 0 })))
          assert.equals(slopes, text(flow.fn(function(v) return gradient(layer, v) end)(x)))
          assert.equals(slopes, text(gradient(by_op, x)))
        end)
      end)

      if kind == "Max" then
        it("gives each window's gradient to an element of it, and values of elements", function()
          each_setting(rank, function(options, x)
            local layer, known = layers[name](options), { nan = true }
            for value in text(x):gmatch "%S+" do known[value] = true end
            local y = layer(x)
            for value in text(y):gmatch "%S+" do assert.is_true(known[value], value) end
            assert.equals(y.size, gradient(layer, x):sum():item())
          end)
        end)
      end
    end)
  end
end
