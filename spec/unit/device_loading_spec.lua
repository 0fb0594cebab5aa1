--- What a GPU has loaded when it has done its first steps: kernels are loaded when they are first launched, and images of machine code with
--- their first kernel. Counted on the emulated device, which launches the same kernels.
local support = require "spec.support.init"
local emulated = require "spec.support.emulated"

if emulated.missing() then
  pending("loading of kernels: " .. emulated.missing())
  return
end

local build = support.program:gsub("/bin/[^/]*$", "")

--- The image of each kernel, and the bytes of each image, for all its targets, as the assembler's notes beside them tell; nil: this build
--- has none.
local function read_images()
  local names, image_of, bytes, all = support.run(("ls %s/cuda/*.ptxas 2>/dev/null"):format(build)), {}, {}, 0
  for path in names:gmatch("%S+") do
    for kernel in support.read(path):gmatch("Compiling entry function '([%w_]+)_kernel'") do image_of[kernel] = path end
    local file = assert(io.open((path:gsub("ptxas$", "fatbin")), "rb"))
    bytes[path] = file:seek("end")
    file:close()
    all = all + bytes[path]
  end
  return all > 0 and image_of or nil, bytes, all
end

--- The kernels that a device got, in order, and how many of them while it recorded.
local function loaded(net)
  local path, kernels, late, is_recording = support.file("launches", ""), {}, 0, false
  local output, status = support.run(("FLOW_BUILD=%s FLOW_LIST_LAUNCHES=%s %sscripts/cuda-launches %s mixed_bfloat16"):format(build, path,
    support.root, net))
  assert.equal(0, status, output)
  for line in io.lines(path) do
    if line == "recording" then is_recording = true end
    local kernel = line:match("^load (%S+)$")
    if kernel then kernels[#kernels + 1] = kernel end
    if kernel and is_recording then late = late + 1 end
  end
  return kernels, late
end

describe("a GPU loads", function()
  --- net, batch; kernels that it loads at most, and of the images' bytes.
  for _, most in ipairs { { "flowers 32", 29, 0.70 }, { "mnist 64", 24, 0.70 }, { "resnet50 256", 29, 0.81 } } do
    it("what its steps launch, and nothing while it records: " .. most[1], function()
      local kernels, late = loaded(most[1])
      assert.is_true(#kernels > 10 and #kernels <= most[2], #kernels .. " kernels were loaded")
      assert.equal("fill", kernels[1])      -- when it is opened
      assert.equal(0, late)
      local image_of, bytes, all = read_images()
      if not image_of then return end
      local sum, seen = 0, {}
      for _, kernel in ipairs(kernels) do
        local image = image_of[kernel]
        if image and not seen[image] then seen[image], sum = true, sum + bytes[image] end
      end
      assert.is_true(sum > 0 and sum <= most[3] * all, ("%d of %d bytes of images"):format(sum, all))
    end)
  end
end)
