-- verify_spec.lua: flow.distribute.verify between real processes: who has other numbers is named by all, soon, and nobody is who has not.
local support = require "spec.support.init"


-- What each worker said, without addresses.
local function train(workers, arguments)
  local command = "env FLOW_THREADS=1 FLOWLUA_PATH=%slua timeout -k 5 60 %s launch --workers %d %sspec/dist/verify.lua -- %s"
  local text, code = support.run(command:format(support.root, support.program, workers, support.root, arguments))
  assert.equal(0, code, text)
  local said = {}
  for line in text:gmatch("%] checks ([^\n]*)") do said[#said + 1] = line:gsub(" 127[%d.:]+", "") end
  assert.equal(workers, #said, text)
  return said
end

describe("workers that compare their variables", function()
  for _, loop in ipairs { "", "--custom" } do
    it("find nothing where nothing is wrong, moving statistics included " .. loop, function()
      for _, line in ipairs(train(3, loop)) do assert.equal("4 equal", line) end
      for _, line in ipairs(train(2, "--every 1 " .. loop)) do assert.equal("16 equal", line) end
    end)

    it("name the one that differs from the others, its variable and the step " .. loop, function()
      for worker = 0, 2, 2 do
        for _, line in ipairs(train(3, ("--worker %d --at 6 %s"):format(worker, loop))) do
          local wanted = '1 distribute.verify: after step 8 worker:%d has other numbers in "sequential/first/kernel" than the other 2; '
          assert.equal(wanted:format(worker), line:sub(1, #wanted - 1), line)
        end
      end
    end)
  end

  it("find a moving statistic and a slot of the optimizer", function()
    for _, line in ipairs(train(3, "--worker 1 --at 8 --variable 5")) do
      local wanted = 'after step 8 worker:1 has other numbers in "sequential/norm/moving_mean" than the other 2; 1 of %d+ variables'
      assert.truthy(line:find(wanted), line)
    end
    for _, line in ipairs(train(3, "--worker 1 --at 12 --slot 3")) do
      assert.truthy(line:find('after step 12 worker:1 has other numbers in ".*" than the other 2; 1 of'), line)
    end
  end)

  it("name both of two", function()
    for _, line in ipairs(train(2, "--worker 1 --at 2")) do
      local wanted = 'after step 4 worker:0 and worker:1 have different numbers in "sequential/first/kernel", and there is no majority'
      assert.truthy(line:find(wanted, 1, true), line)
    end
  end)
end)
