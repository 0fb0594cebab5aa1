-- Convolutions of the reference models for GPUs that this machine does not have: every formula has a plan of the real cuDNN, with the
-- workspace that spec/cuda/plans.txt holds. The table is of one version of cuDNN; with another one there must be plans, of whatever size.
-- A plan takes a quarter of a second: FLOW_CASES formulas of the table are asked for, by default 48 of them.
local support = require "spec.support.init"

local build = support.program:gsub("/bin/[^/]*$", "")
local lines = {}
for line in io.lines(support.root .. "spec/cuda/plans.txt") do lines[#lines + 1] = line end

local function formulas_of(table_lines)
  local formulas = {}
  for _, line in ipairs(table_lines) do
    if line:sub(1, 1) ~= "#" then formulas[#formulas + 1] = line:match("[^\t]*$") end
  end
  return formulas
end

describe("plans for GPUs", function()
  it("are asked for by the formulas of the table", function()
    local path = support.file("formulas", "")
    local output, code = support.run(("FLOW_EMULATED_FORMULAS=%s %s/bin/cuda_formulas"):format(path, build))
    assert.are.equal("", output)
    assert.are.equal(0, code)
    local asked = {}
    for line in io.lines(path) do asked[#asked + 1] = line end
    assert.is_true(#asked > 300)
    assert.are.same(formulas_of(lines), asked)
  end)

  it("are of convolutions alone where FLOW_CUDA_FUSION says so", function()
    local fused = {}
    for level = 0, 2 do
      local path = support.file("formulas", "")
      local output, code = support.run(("FLOW_CUDA_FUSION=%d FLOW_EMULATED_FORMULAS=%s %s/bin/cuda_formulas"):format(level, path, build))
      assert.are.same({ "", 0 }, { output, code })
      fused[level] = { sums = 0, relus = 0 }
      for line in io.lines(path) do
        if line:find("^convolution data .*bias=1") then fused[level].sums = fused[level].sums + 1 end
        if line:find("^convolution .*relu=1") or line:find("^convolution forward .*bias=1") then
          fused[level].relus = fused[level].relus + 1
        end
      end
    end
    assert.are.same({ sums = 0, relus = 0 }, fused[0])
    assert.are.equal(0, fused[1].sums)
    assert.is_true(fused[2].sums > 0 and fused[1].relus > 0 and fused[2].relus > 0)
  end)

  it("exist for formulas of the whole table, as it says", function()
    if os.getenv "FLOW_SANITIZED" then return pending("cuDNN has its own findings under sanitizers") end
    local every = math.max(1, math.floor((#lines - 2) / (tonumber(os.getenv("FLOW_CASES")) or 48)))
    local expected = { lines[1], lines[2] }
    for i = 3, #lines, every do expected[#expected + 1] = lines[i] end
    local output, code = support.run(("FLOW_BUILD=%s %sscripts/cuda-plans --every %d"):format(build, support.root, every))
    if code == 3 then return pending((output:gsub("^cuda%-plans: ", ""):gsub("\n$", ""))) end
    assert.are.equal(0, code, output)
    local found, kinds = {}, {}
    for line in output:gmatch("[^\n]+") do found[#found + 1] = line end
    assert.are.equal(#expected, #found)
    for i = 3, #found do
      local kind = found[i]:match("\t(%l+ ?%l*) [^\t]*$")
      kinds[kind] = true
      assert.is_nil(found[i]:find("none"), found[i])
    end
    assert.is_true(kinds["convolution forward"] and kinds["convolution data"] and kinds["convolution filter"])
    if found[1] == lines[1] then assert.are.same(expected, found) end
  end)

  it("are kept in files, and searched for again where a file is not what it says", function()
    if os.getenv "FLOW_SANITIZED" then return pending("cuDNN has its own findings under sanitizers") end
    local program = build .. "/bin/cuda_plans"
    if not support.run("test -x " .. program .. " && echo yes"):find("yes") then
      return pending("this build has no plugin for NVIDIA GPUs")
    end
    local formula = "convolution %s float32 bias=0 relu=0 exact=%d groups=1 images=8 channels=16>32 in=20x20 out=20x20 kernel=3x3 " ..
      "stride=1x1 dilation=1x1 before=1x1 after=1x1\n"
    local asked = support.file("asked", formula:format("data", 0) .. formula:format("data", 1) .. formula:format("filter", 0))
    local folder = support.file("kept", "")
    os.remove(folder)

    --- searched for, kept; then the plans' lines
    local function plan(device, cache)
      local output, code = support.run(("FLOW_CACHE=%s LD_LIBRARY_PATH=%s/cuda/stand_in %s %sspec/cuda/devices/%s.json <%s")
        :format(cache or folder, build, program, support.root, device, asked))
      if code == 2 then return nil, output end
      assert.are.equal(0, code, output)
      local searched, kept = output:match("# (%d+) searched for, (%d+) kept")
      return tonumber(searched) * 10 + tonumber(kept), output:gsub("#[^\n]*\n", "")
    end

    local first, lines_of_first = plan("sm_90")
    if not first then return pending(lines_of_first) end
    assert.are.equal(30, first)
    local again, lines_again = plan("sm_90")
    assert.are.equal(3, again)
    assert.are.equal(lines_of_first, lines_again)
    assert.are.equal(30, (plan("sm_80")))
    assert.are.equal(3, (plan("sm_80")))

    local files = {}
    for path in support.run(("ls %s/cudnn/*.plan"):format(folder)):gmatch("[^\n]+") do files[#files + 1] = path end
    assert.are.equal(6, #files)
    for _, path in ipairs(files) do
      local file = io.open(path, "rb")
      local text = file:read("*a")
      file:close()
      for _, damaged in ipairs { text:sub(1, -2), text .. "}", "", (text:gsub("tensors", "tensorz", 1)) } do
        file = io.open(path, "wb")
        file:write(damaged)
        file:close()
        local found = plan("sm_90")
        assert.is_true(found == 12 or found == 3, tostring(found))      -- it was this device's, or the other one's
      end
    end
    assert.are.equal(3, (plan("sm_90")))

    local where = support.file("no_folder", "")
    assert.are.equal(30, (plan("sm_90", where)))
    assert.are.equal(30, (plan("sm_90", "''")))
    assert.are.equal(30, (plan("sm_90", "''")))
  end)
end)
