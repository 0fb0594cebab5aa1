--- FLOW_EMULATED_BOUNDS=1: the kernels of the emulated device are watched to the byte (spec/cuda/emulation/bounds.c), also around
--- calls of libraries. spec/c/test_cuda_bounds.c tests that the watch finds what lies beside.
local support = require "spec.support.init"
local emulated = require "spec.support.emulated"

local build = support.program:gsub("/bin/[^/]*$", "")

describe("kernels that are watched", function()
  for _, test in ipairs { "filters", "library", "matmul", "optimizers" } do
    it("touch what their ops were given, and nothing else: " .. test, function()
      if emulated.missing() then return pending(emulated.missing()) end
      if os.getenv "FLOW_SANITIZED" then return pending("the kernels call the sanitizer, not the watch") end
      local output, status = support.run(("FLOW_EMULATED_BOUNDS=1 timeout 120 %s/bin/test_cuda_%s 2>&1"):format(build, test))
      assert.equal(0, status, output)
      assert.is_nil(output:find("out of bounds", 1, true), output)
    end)
  end
end)
