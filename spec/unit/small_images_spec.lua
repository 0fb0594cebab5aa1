-- small_images_spec.lua: convolutions of images of few pixels, where kernels reach over the borders, several images share the sums of the
-- weights' gradient, and groups, strides and dilation meet in every way: float32, which has the fast kernels, against float64, which has
-- plain loops. Sizes are random; FLOW_CASES=10000 tries this many.
local flow = require "flow"
local arguments = require "spec.backend.random_ops.arguments"

local FIRST, LAST = (require "spec.support.case_numbers")(60)

local function random_case(number)
  local draw = arguments.source(number).draw
  local groups = draw(1, 4) == 1 and draw(2, 3) or 1
  local kernel = { draw(1, 6), draw(1, 6) }
  local options = { strides = draw(1, 3), padding = draw(1, 3) == 1 and "valid" or "same" }
  if options.strides == 1 then options.dilation_rate = draw(1, 3) end
  local least = options.padding == "valid" and function(k) return (k - 1) * (options.dilation_rate or 1) + 1 end or function() return 1 end
  local size = { math.max(draw(1, 9), least(kernel[1])), math.max(draw(1, 9), least(kernel[2])) }
  local inputs, outputs = groups * draw(1, 20), groups * draw(1, 40)
  return {
    options = options,
    kernel = flow.random.uniform({ kernel[1], kernel[2], inputs / groups, outputs }, { minval = -1, maxval = 1, seed = number + 1 }),
    x = flow.random.uniform({ draw(1, 12), size[1], size[2], inputs }, { minval = -1, maxval = 1, seed = number }),
    label = ("number %d: {%d, %d, %d} to %d, kernel %d x %d, strides %d, dilation %d, %s, groups %d"):format(number, size[1], size[2],
      inputs, outputs, kernel[1], kernel[2], options.strides, options.dilation_rate or 1, options.padding, groups),
  }
end

-- The result and the gradients of the images and the kernel.
local function results(case, images, filters, planned)
  local function f(x, kernel)
    local tape = flow.GradientTape()
    tape:watch(x)
    tape:watch(kernel)
    local y = tape:record(function() return flow.conv(x, kernel, case.options) end)
    return { y, unpack(tape:gradient(y, { x, kernel }, flow.cos(y * 3))) }
  end
  return (planned and flow.fn(f) or f)(images, filters)
end

describe("convolutions of small images", function()
  it("have the values and gradients of float64", function()
    for number = FIRST, LAST do
      local case = random_case(number)
      local expected = results(case, case.x:to("float64"), case.kernel:to("float64"))
      for _, planned in ipairs { true, false } do
        for i, found in ipairs(results(case, case.x, case.kernel, planned)) do
          local scale = flow.max(flow.abs(expected[i])):item() + 1e-3
          local difference = flow.max(flow.abs(found:to("float64") - expected[i])):item()
          assert.is_true(difference <= 5e-5 * scale, ("%s: result %d is off by %g of %g"):format(case.label, i, difference, scale))
        end
      end
      if number % 50 == 0 then collectgarbage() end
    end
  end)
end)
