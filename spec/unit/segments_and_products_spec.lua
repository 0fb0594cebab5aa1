-- Extremes of segments, updates in place of elements and running products: eager ones, which loops over values find, are those of a trace,
-- and products in runs are those of one element after the other. At the end, what ops cost beside each other.
require "spec.support.init"
local flow = require "flow"

local nan, inf = 0 / 0, math.huge

-- Equal numbers, within a share of `within`; NaN is NaN, and zeros have one sign.
local function assert_same(expected, found, within, what)
  local function compare(a, b)
    if type(a) == "table" then
      assert.equal(#a, #b)
      for i = 1, #a do compare(a[i], b[i]) end
    elseif not (a == b and (a ~= 0 or type(a) ~= "number" or 1 / a == 1 / b) or a ~= a and b ~= b)
      and not (within and math.abs(a - b) <= within * math.abs(a)) then
      error(("%s: expected %s, found %s"):format(what, tostring(a), tostring(b)))
    end
  end
  compare(expected:totable(), found:totable())
end

local function some(condition, share, seed) return flow.lt(flow.random.uniform(condition.shape, { seed = seed }), share) end

describe("eager tensors and traced ones have the same", function()
  for _, dtype in ipairs { "float32", "float64", "float16", "int8", "uint8", "int32", "int64" } do
    it("segments and updates of " .. dtype, function()
      for _, rest in ipairs { {}, { 3 } } do
        local n = 200
        local x = flow.abs(flow.floor(flow.random.normal({ n, unpack(rest) }, { seed = 1 }) * 3))
        local base = flow.abs(flow.floor(flow.random.normal({ 20, unpack(rest) }, { seed = 2 })))
        if dtype ~= "uint8" then x = flow.where(some(x, 0.5, 3), x, -x) end
        if dtype:find "float" then
          x = flow.where(some(x, 0.05, 4), nan, flow.where(some(x, 0.1, 5), -inf, x))
          base = flow.where(some(base, 0.2, 6), -inf, base)
        end
        x, base = x:to(dtype), base:to(dtype)
        local segments = (flow.random.uniform({ n }, { seed = 7 }) * 12):to "int32" - 1
        local positions = (segments + 2):reshape { n, 1 }
        for _, name in ipairs { "segment_max", "segment_min" } do
          local function reduced(data, ids) return flow[name](data, ids, 15) end
          assert_same(flow.fn(reduced)(x, segments), reduced(x, segments), nil, name)
        end
        local few = flow.where(some(x, 0.05, 8), flow.full_like(x, 2), flow.full_like(x, 1))
        local function multiplied(data, ids) return flow.segment_prod(data, ids, 15) end
        assert_same(flow.fn(multiplied)(few, segments), multiplied(few, segments), nil, "segment_prod")
        local function summed(data, ids) return flow.segment_sum(data, ids, 15) end
        local whole = dtype:find "float" and few or x
        assert_same(flow.fn(summed)(whole, segments), summed(whole, segments), nil, "segment_sum")
        for _, how in ipairs { "max", "min", "set" } do
          local function updated(data, at, values) return flow.scatter_update(data, at, values, how ~= "set" and how or nil) end
          assert_same(flow.fn(updated)(base, positions, x), updated(base, positions, x), nil, "scatter_update " .. how)
        end
      end
    end)
  end
end)

describe("flow.scatter_update", function()
  it("leaves infinities where there are no updates", function()
    for _, call in ipairs { function(f) return f end, flow.fn } do
      local update = call(function(x, how) return flow.scatter_update(x, { { 2 } }, { 1 }, how) end)
      assert.same({ -inf, 1, -inf }, update(flow.full({ 3 }, -inf), "max"):totable())
      assert.same({ inf, 1, inf }, update(flow.full({ 3 }, inf), "min"):totable())
    end
  end)
end)

describe("flow.cumprod", function()
  it("multiplies one element after the other, whatever the length", function()
    for _, n in ipairs { 1, 5, 64, 65, 96, 100, 1000, 2500 } do
      local x = flow.random.uniform({ n }, { seed = n, dtype = "float64" }) * 0.2 + 0.9
      for _, options in ipairs { {}, { exclusive = true }, { reverse = true }, { reverse = true, exclusive = true } } do
        local list, expected, product = x:totable(), {}, 1
        for k = 1, n do
          local i = options.reverse and n + 1 - k or k
          expected[i] = options.exclusive and product or product * list[i]
          product = product * list[i]
        end
        expected = flow.tensor(expected, { dtype = "float64" })
        assert_same(expected, flow.cumprod(x, 1, options), 1e-12, n .. " elements")
        local function spread(line) return line:reshape({ 1, n, 1 }):broadcast_to { 2, n, 3 } end
        assert_same(spread(expected), flow.cumprod(spread(x), 2, options), 1e-12, n .. " elements of an axis between others")
      end
    end
  end)
end)

-- What an op costs beside another that does as much: the least processor time of several runs.
describe("the time of many elements", function()
  local function least_time(f)
    local least = inf
    for _ = 1, 20 do
      local before = os.clock()
      f()
      least = math.min(least, os.clock() - before)
    end
    return least
  end
  local n = 200000
  local x, numbers = flow.random.uniform({ n }, { seed = 1 }), (flow.random.uniform({ n }, { seed = 2 }) * 10):to "int32"
  local double = x:to "float64"
  for what, pair in pairs {
    ["segment_max beside segment_sum"] = { 15, function() flow.segment_max(x, numbers, 10) end,
      function() flow.segment_sum(x, numbers, 10) end },
    ["fmax of whole numbers beside maximum"] = { 3, function() flow.fmax(numbers, 3) end, function() flow.maximum(numbers, 3) end },
    ["argsort of float64 beside float32"] = { 5, function() flow.argsort(double) end, function() flow.argsort(x) end },
  } do
    it(what .. " is of one order", function()
      local ratio = least_time(pair[2]) / least_time(pair[3])
      if ratio > pair[1] then error(("%.1f times as long, expected at most %d"):format(ratio, pair[1])) end
    end)
  end
end)
