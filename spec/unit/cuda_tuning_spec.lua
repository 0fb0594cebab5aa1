--- Which of cuBLASLt's algorithms a product on a GPU runs with, by spec/cuda/algorithms.c, which plays the library and the device.
local support = require "spec.support.init"

local program = support.program:gsub("/[^/]*$", "") .. "/cuda_algorithms"

describe("products on GPUs", function()
  if support.run(("test -x %s && echo there"):format(program)) == "" then
    return pending("the plugin for NVIDIA GPUs is not built: it needs the CUDA 13 toolkit")
  end
  local cache = support.folder()

  --- What the program says, with FLOW_CUDA_TUNE=tune.
  local function say(tune, arguments, folder)
    local output, status = support.run(("FLOW_CUDA_TUNE=%s FLOW_CACHE=%s %s %s 2>&1"):format(tune, folder or cache, program, arguments))
    assert.equal(0, status, output)
    return output
  end

  it("take the likely best algorithm, and time none, unless that is asked for", function()
    assert.equal("algorithm 0 of 1, 0 runs, 0 checked\n", say("", "2"))
    assert.equal("algorithm 0 of 1, 0 runs, 0 checked\n", say("1", "2 exact"))
    assert.equal("", support.run("ls " .. cache))
  end)

  it("are asked for again where the library failed, and not where it has no algorithm", function()
    assert.equal("algorithm 0 of 1, 0 runs, 0 checked\n", say("", "2 failing"))
    local output, status = support.run(("FLOW_CACHE=%s %s 2 refusing 2>&1"):format(cache, program))
    assert.equal(1, status, output)
    assert.matches("cuBLASLt: no algorithm for a product", output)
  end)

  it("take the fastest of five, by their times, which later processes find", function()
    assert.equal("algorithm 2 of 5, 64 runs, 0 checked\n", say("1", "2"))
    assert.equal("algorithm 2 of 0, 0 runs, 1 checked\n", say("1", "1"))
    assert.equal("algorithm 1 of 5, 64 runs, 0 checked\n", say("1", "1 unaligned"))
    assert.equal("algorithm 1 of 0, 0 runs, 1 checked\n", say("1", "4 unaligned"))
    assert.equal("algorithm 0 of 1, 0 runs, 0 checked\n", say("", "2"))
  end)

  it("time them again where the one that was kept cannot be run or is cut short", function()
    assert.equal("algorithm 4 of 5, 64 runs, 1 checked\n", say("1", "4 stale"))
    assert.equal("algorithm 4 of 0, 0 runs, 1 checked\n", say("1", "2"))
    support.run(("for f in %s/cudnn/*.plan; do truncate -s -20 $f; done"):format(cache))
    assert.equal("algorithm 2 of 5, 64 runs, 0 checked\n", say("1", "2"))
  end)

  it("take the likely best one where there is no memory to time them", function()
    assert.equal("algorithm 0 of 5, 0 runs, 0 checked\n", say("1", "2 full", support.folder()))
  end)
end)
