-- loops_spec.lua: flow.scan against jax.lax.scan: results, gradients, and gradients of a penalty on the gradient, eagerly and as a loop
-- of a plan. See loops.py.
require "spec.support.init"
local flow = require "flow"
local cases = require "spec.golden.loops"

local ROWS, SIZE = 3, 4

local function wave(shape, seed)
  local count, list = 1, {}
  for _, n in ipairs(shape) do count = count * n end
  for k = 1, count do list[k] = math.sin(k * 0.7 + seed) / 2 end
  return flow.tensor(list, { dtype = "float64" }):reshape(unpack(shape))
end

local function near(expected, found, what)
  expected = flow.tensor(expected, { dtype = "float64" })
  assert.same({ unpack(expected.shape) }, { unpack(found.shape) }, what)
  local distance = (expected - found):abs():max():item()
  assert.is_true(distance < 1e-12, ("%s: %g"):format(what, distance))
end

local function run(case, h, c, xs, w, u)
  local ys, state = flow.scan(function(before, x)
    local next_c = before[2] * 0.5 + before[1]:matmul(w):tanh()
    local next_h = (next_c + x * u):tanh()
    return { next_h, next_c }, before[1] * next_h
  end, { h, c }, xs, { reverse = case.reverse })
  return state[1], state[2], ys
end

local function loss_of(case, scale, h, c, xs, w, u)
  local last_h, last_c, ys = run(case, h, c, xs, w, u)
  return (ys * ys * scale):sum() + (last_h * 0.5 + last_c * last_h):sum()
end

local function gradients(f, sources)
  local tape = flow.GradientTape()
  tape:watch(sources)
  return tape:gradient(tape:record(f), sources)
end

describe("flow.scan", function()
  for _, case in ipairs(cases) do
    local given = { wave({ ROWS, SIZE }, 1), wave({ ROWS, SIZE }, 2), wave({ case.rounds, ROWS, SIZE }, 3), wave({ SIZE, SIZE }, 4),
      wave({ SIZE }, 5) }
    local scale = wave({ case.rounds, ROWS, SIZE }, 9)

    local function results(...) return run(case, ...) end
    local function of_loss(...)
      local sources = { ... }
      return unpack(gradients(function() return loss_of(case, scale, unpack(sources)) end, sources))
    end
    local function of_penalty(...)
      local sources = { ... }
      return unpack(gradients(function()
        local of_xs = gradients(function() return loss_of(case, scale, unpack(sources)) end, { sources[3] })[1]
        return (of_xs * of_xs):sum()
      end, sources))
    end

    it(("over %d rows%s is JAX's"):format(case.rounds, case.reverse and ", from the last one on" or ""), function()
      for way, wrap in pairs { eagerly = function(f) return f end, traced = flow.fn } do
        local h, c, ys = wrap(results)(unpack(given))
        near(case.h, h, way .. ", state") near(case.c, c, way .. ", second state") near(case.ys, ys, way .. ", results")
        for of, f in pairs { gradients = of_loss, of_penalty = of_penalty } do
          for i, found in ipairs { wrap(f)(unpack(given)) } do near(case[of][i], found, ("%s, %s, source %d"):format(way, of, i)) end
        end
      end
    end)
  end
end)
