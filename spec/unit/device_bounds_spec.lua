--- FLOW_EMULATED_BOUNDS=1: the kernels of the emulated device are watched to the byte (spec/cuda/emulation/bounds.c), also around
--- calls of libraries, and their threads compared with each other (races.c). spec/c/test_cuda_bounds.c tests that the watch finds what lies
--- beside, and threads that meet.
local support = require "spec.support.init"
local emulated = require "spec.support.emulated"

local build = support.program:gsub("/bin/[^/]*$", "")

describe("kernels that are watched", function()
  for test in ("attention batch_norm bundle casts constant elementwise filters gather images library matmul movement " ..
    "normalize optimizers pooling random reduce softmax training"):gmatch "%S+" do
    it("touch what their ops were given, and nothing else: " .. test, function()
      if emulated.missing() then return pending(emulated.missing()) end
      if os.getenv "FLOW_SANITIZED" then return pending("the kernels call the sanitizer, not the watch") end
      local output, status = support.run(("FLOW_EMULATED_BOUNDS=1 timeout 120 %s/bin/test_cuda_%s 2>&1"):format(build, test))
      assert.equal(0, status, output)
      for _, text in ipairs { "out of bounds", "race: ", "divergence: " } do assert.is_nil(output:find(text, 1, true), output) end
    end)
  end
end)
