-- normalize_spec.lua: layers that normalize each sample over its last axes run one op (core/ops/rules/normalize.c), into which plans for
-- predictions put gamma and beta (core/plan/passes/fuse_normalize.c).
local flow = require "flow"
local backend = require "spec.support.backend"
local steps = require "flow.train.steps"
local layers = flow.layers

local function same(a, b)
  assert.same(a.shape, b.shape)
  assert.same(a:flatten():totable(), b:flatten():totable())
end

--- The layer, with random variables, and its formula in float64.
local function case(class, axis, shape, options)
  local layer = layers[class](options)
  local input = layers.Input(shape)
  local model = flow.Model { inputs = input, outputs = layer(input) }
  for i, v in ipairs(layer.weights) do v:assign(flow.random.normal(v.shape, { seed = 10 + i })) end
  local axes, wide = {}, { 1 }
  for i = 1, #shape do wide[i + 1] = 1 end
  for _, a in ipairs(axis) do
    axes[#axes + 1] = a < 0 and #shape + 2 + a or a
    wide[axes[#axes]] = shape[axes[#axes] - 1]
  end
  local function formula(x)
    x = x:to "float64"
    if class == "LayerNormalization" then x = x - x:mean(axes, true) end
    local y = x * flow.rsqrt(flow.square(x):mean(axes, true) + layer.epsilon)
    for i, v in ipairs(layer.weights) do
      local parameter = v:value():to("float64"):reshape(unpack(wide))
      y = v.path:find "beta$" and y + parameter or y * parameter
    end
    return y
  end
  return model, formula
end

local CASES = {
  { "LayerNormalization", { -1 }, { 7 } }, { "LayerNormalization", { -1 }, { 5, 33 } }, { "LayerNormalization", { -1 }, { 1, 1 } },
  { "LayerNormalization", { -2, -1 }, { 4, 3, 6 } }, { "LayerNormalization", { 2, 3 }, { 4, 6 } },
  { "LayerNormalization", { -1 }, { 5, 16 }, { scale = false } }, { "LayerNormalization", { -1 }, { 5, 16 }, { center = false } },
  { "LayerNormalization", { -1 }, { 5, 16 }, { center = false, scale = false } },
  { "RMSNormalization", { -1 }, { 5, 33 } }, { "RMSNormalization", { -2, -1 }, { 5, 8 } },
}
-- Axes that are not the last ones.
local OTHERS = {
  { "LayerNormalization", { 2 }, { 5, 6 } }, { "LayerNormalization", { 2, 4 }, { 3, 4, 5 } }, { "RMSNormalization", { 2 }, { 5, 6 } },
}

local function each(list, f)
  for _, c in ipairs(list) do
    local options = { axis = #c[2] == 1 and c[2][1] or c[2] }
    for key, value in pairs(c[4] or {}) do options[key] = value end
    local name = ("%s over %s of {%s}"):format(c[1], table.concat(c[2], " "), table.concat(c[3], " "))
    local model, formula = case(c[1], c[2], c[3], options)
    f(name, model, formula, c[3])
  end
end

describe("a layer that normalizes each sample", function()
  it("gives the bits of its ops in a prediction, whatever the number of rows, and those of the formula", function()
    for _, list in ipairs { CASES, OTHERS } do
      each(list, function(name, model, formula, shape)
        for _, rows in ipairs { 1, 2, 5, 33 } do
          local x = flow.random.normal({ rows, unpack(shape) }, { seed = rows, mean = 3 })
          local y = model:predict(x, { batch_size = 4, verbose = 0 })
          same(model(x), y)
          backend.near(formula(x), y, 1e-5, name)
        end
      end)
    end
  end)

  it("is one step of a plan, where the axes are the last ones", function()
    local function plan(model, shape)
      model:predict(flow.zeros { 2, unpack(shape) }, { verbose = 0 })
      return steps.describe(model._steps[#model._steps])
    end
    each(CASES, function(name, model, _, shape)
      local text, first = plan(model, shape), model.weights[1]
      local scaled = first and not first.path:find "beta$"
      assert.is_truthy(text:find(scaled and "layer_norm" or "normalize", 1, true), name .. text)
      for _, op in ipairs { "square", "sum", "rsqrt", "mul", scaled and "normalize" or "layer_norm" } do
        assert.is_nil(text:find("%f[%w]" .. op .. "%f[%W]"), name .. text)
      end
    end)
    each(OTHERS, function(name, model, _, shape)
      local text = plan(model, shape)
      assert.is_nil(text:find "norm", name .. text)
    end)
  end)

  it("trains by the derivative of the formula, and that has a derivative again", function()
    each(CASES, function(name, model, formula, shape)
      local x = flow.random.normal({ 3, unpack(shape) }, { seed = 5, mean = 1 })
      local weights = flow.random.normal({ 3, unpack(shape) }, { seed = 6 })
      local list = { x }
      for _, v in ipairs(model.trainable_variables) do list[#list + 1] = v end
      --- The gradients of a sum, and that of x of the sum of the squares of x's gradient.
      local function gradients(f)
        local outer, inner = flow.GradientTape(), flow.GradientTape()
        local first
        local value = outer:record(function()
          outer:watch(x)
          local sum = inner:record(function()
            inner:watch(x)
            return flow.sum(f(x) * weights:to(f == formula and "float64" or "float32"))
          end)
          first = inner:gradient(sum, list)
          return flow.sum(flow.square(first[1]))
        end)
        return first, outer:gradient(value, { x })[1]
      end
      local expected, expected_again = gradients(formula)
      local found, found_again = gradients(model)
      for i = 1, #list do backend.near(expected[i], found[i], 2e-4, name .. ", gradient " .. i) end
      backend.near(expected_again, found_again, 2e-3, name .. ", again")
    end)
  end)
end)

describe("the gradient of what was added to every row", function()
  it("has the bits of a traced step where the batch is one row", function()
    for _, shape in ipairs { { 3, 2 }, { 7 }, { 5, 4, 3 }, { 40, 19 } } do
      local ones = {}
      for i = 1, #shape do ones[i] = i == #shape and shape[i] or 1 end
      local b = flow.Variable(flow.zeros { 1, unpack(ones) })
      local function gradient(x, g)
        local tape = flow.GradientTape()
        local value = tape:record(function() return flow.sum((x + b) * g) end)
        return tape:gradient(value, { b })[1]
      end
      local traced = flow.fn(gradient)
      for _, rows in ipairs { 4, 1, 3 } do
        local x, g = flow.random.normal({ rows, unpack(shape) }, { seed = 1 }), flow.random.normal({ rows, unpack(shape) }, { seed = 2 })
        same(gradient(x, g), traced(x, g))
      end
    end
  end)
end)
