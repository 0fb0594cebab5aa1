-- volumes_spec.lua: convolutions over volumes go by one convolution over images whose pixels have the channels of all planes that the
-- window meets, or, where x has many more channels than the result, by a sum of one for each plane. Both give the sum that the formula
-- of a cross-correlation says, eagerly and in a plan.
local flow = require "flow"
local layers = flow.layers

local function draw(random, low, high) return math.floor(low + (high - low + 1) * random()) end

-- A generator of numbers in [0, 1) of its own, so that the cases are the same whatever else draws.
local function generator(seed)
  return function()
    seed = (seed * 16807) % 2147483647
    return seed / 2147483647
  end
end

-- y[d][i][j][f] of one volume of x, by loops over all indices. x, w: nested tables; pads: before each axis.
local function cross_correlation(x, w, sizes, strides, dilation, pads)
  local y = {}
  for d = 1, sizes[1] do
    y[d] = {}
    for i = 1, sizes[2] do
      y[d][i] = {}
      for j = 1, sizes[3] do
        local sums = {}
        for f = 1, #w[1][1][1][1] do sums[f] = 0 end
        for a = 1, #w do
          local plane = x[(d - 1) * strides[1] + (a - 1) * dilation[1] + 1 - pads[1]]
          for b = 1, #w[1] do
            local row = plane and plane[(i - 1) * strides[2] + (b - 1) * dilation[2] + 1 - pads[2]]
            for c = 1, #w[1][1] do
              local pixel = row and row[(j - 1) * strides[3] + (c - 1) * dilation[3] + 1 - pads[3]]
              for k = 1, pixel and #pixel or 0 do
                for f = 1, #sums do sums[f] = sums[f] + pixel[k] * w[a][b][c][k][f] end
              end
            end
          end
        end
        y[d][i][j] = sums
      end
    end
  end
  return y
end

describe("Conv3D", function()
  it("is the cross-correlation of random volumes, windows, strides, dilations and channels", function()
    for case = 1, tonumber(os.getenv "FLOW_CASES") or 30 do
      local random = generator(9000 + case)
      for _ = 1, 5 do random() end
      local size, window, strides, dilation, pads, sizes = {}, {}, {}, {}, {}, {}
      local same, dilated = random() < 0.5, random() < 0.3
      for axis = 1, 3 do
        window[axis] = draw(random, 1, 3)
        strides[axis] = dilated and 1 or draw(random, 1, 2)
        dilation[axis] = dilated and draw(random, 1, 2) or 1
        local extent = (window[axis] - 1) * dilation[axis] + 1
        size[axis] = extent + draw(random, 0, 4)
        sizes[axis] = same and math.ceil(size[axis] / strides[axis]) or math.floor((size[axis] - extent) / strides[axis]) + 1
        pads[axis] = same and math.floor(math.max((sizes[axis] - 1) * strides[axis] + extent - size[axis], 0) / 2) or 0
      end
      local batch, channels, filters = draw(random, 1, 3), draw(random, 1, 5), draw(random, 1, 4)
      local x = flow.random.uniform({ batch, size[1], size[2], size[3], channels }, { minval = -1, maxval = 1, seed = case })
      local layer = layers.Conv3D(filters, window, { strides = strides, dilation_rate = dilation, padding = same and "same" or "valid",
                                                     use_bias = false })
      local y = layer(x)
      local w, volumes, expected = layer.kernel:totable(), x:totable(), {}
      for i = 1, batch do expected[i] = cross_correlation(volumes[i], w, sizes, strides, dilation, pads) end
      local what = ("case %d: %dx%dx%d by %dx%dx%d, %d to %d channels"):format(case, size[1], size[2], size[3], window[1], window[2],
        window[3], channels, filters)
      expected = flow.tensor(expected)
      assert.same(expected.shape, y.shape, what)
      assert.is_true(flow.max(flow.abs(y - expected)):item() < 1e-5, what)
      local traced = flow.fn(function(t) return layer(t) end)(x)
      assert.is_true(flow.max(flow.abs(traced - expected)):item() < 1e-5, what .. ", traced")
    end
  end)

  it("runs one convolution, or one for each plane where stacking them would copy more than it saves", function()
    local function calls_of(channels, filters)
      local layer, x = layers.Conv3D(filters, 3), flow.ones { 2, 6, 6, 6, channels }
      layer(x)
      return tonumber(tostring(flow.profile(function() layer(x) end)):match "\n%s*convolution%s+%S+%s+%S+%s+%S+%s+(%d+)")
    end
    assert.equal(1, calls_of(1, 8))
    assert.equal(1, calls_of(6, 4))
    assert.equal(3, calls_of(7, 4))
  end)
end)
