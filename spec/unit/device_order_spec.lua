--- In which order a plan runs on a GPU: small ops come together, since a recording makes one launch of those that are next to each other.
local emulated = require "spec.support.emulated"
local flow = require "flow"

if emulated.missing() then
  pending("the order on devices: " .. emulated.missing())
  return
end

local function on(device, fn)
  local result
  flow.device(device, function() result = fn() end)
  return result
end

-- The ops of the plan that fn's trace became, in order; and its results, which are the same on both devices.
local function ops_of(device, fn, x, s)
  local f = flow.fn(fn)
  local results = on(device, function()
    local large, small
    for _ = 1, 3 do large, small = f(x, s) end
    return { large:sum():item(), small:item() }
  end)
  local ops = {}
  for line in f:describe():gmatch("[^\n]+") do ops[#ops + 1] = line:match("^%s*%d+%s+%a+%s+([%w_]+)") end
  return table.concat(ops, " "), results
end

local x, s = flow.full({ 128, 128 }, 1 / 128), flow.tensor { 1, 2, 3, 4 }

local function check(fn, order)
  local _, expected = ops_of("cpu", fn, x, s)
  local ops, results = ops_of("gpu:0", fn, x, s)
  assert.equal(order, ops)
  for i, value in ipairs(expected) do assert.near(value, results[i], 1e-4 * math.abs(value)) end
end

describe("small ops of a plan on a GPU", function()
  it("wait until nothing else is ready", function()
    check(function(large, small)
      for _ = 1, 3 do
        small = small:softmax()
        large = large:matmul(large)
      end
      return large, small:sum()
    end, "matmul matmul matmul softmax softmax softmax sum")
  end)

  it("come before what needs them", function()
    check(function(large, small)
      local scale = small:softmax():max()
      large = large:matmul(large)
      return (large * scale):matmul(large), small:softmax():sum()
    end, "matmul softmax max softmax sum mul matmul")
  end)
end)
