-- resume_spec.lua: a training by workers that was stopped at the smaller last batch of an epoch goes on to the bits of the one that was not
-- (resume.lua).
local support = require "spec.support.init"

local script = support.root .. "spec/dist/resume.lua"

-- The digests and numbers of batches that all workers print.
local function train(engine, folder, arguments)
  local command = ("timeout -k 5 100 %q launch --workers 2 --threads 1 --engine %s %q -- %s --engine %s %s"):format(support.program,
    engine:lower(), script, folder, engine, arguments)
  local text, code = support.run(command)
  assert.equal(0, code, text)
  local digests = {}
  for digest, batches in text:gmatch "digest (%S+) after (%d+) batches" do digests[#digests + 1] = { digest, tonumber(batches) } end
  return digests, text
end

describe("a training by two workers that is stopped", function()
  for _, engine in ipairs { "RING", "MPI" } do
    it("goes on to the same bits, by " .. engine, function()
      local missing = support.missing_engine(engine, true)
      if missing then return pending(missing) end
      local folder = support.path()
      local whole, text = train(engine, folder .. "/whole", "")
      assert.equal(2, #whole, text)
      assert.same({ whole[1][1], 15 }, whole[1])
      assert.same(whole[1], whole[2])
      for _, stop in ipairs { 10, 11 } do                      -- the last batch of the second epoch, the first of the third
        local place = ("%s/%d"):format(folder, stop)
        assert.same({}, (train(engine, place, "--stop " .. stop)))
        local resumed, said = train(engine, place, "")
        assert.same({ { whole[1][1], 15 - (stop - 1) }, { whole[1][1], 15 - (stop - 1) } }, resumed, said)
      end
      os.execute(("rm -rf %q"):format(folder))
    end)
  end
end)
