--- scripts/cuda-kernels: what kernels have in flight, by machine code written for the purpose and, where NVIDIA's tools are, by that of the
--- build.
local support = require "spec.support.init"
local emulated = require "spec.support.emulated"
local launches = require "spec.support.launches"

local build = support.program:gsub("/bin/[^/]*$", "")

local code = [[
  Function : two_kernel
        /*0000*/                   LDG.E.128 R8, desc[UR4][R2.64] ;      /* 0x0 */
        /*0010*/              @!P0 LDG.E.64 R12, desc[UR4][R4.64] ;      /* 0x0 */
        /*0020*/                   FADD R1, R9, R1 ;                     /* 0x0 */
        /*0030*/                   LDG.E.U16 R20, desc[UR4][R6.64] ;     /* 0x0 */
        /*0040*/                   EXIT ;                                /* 0x0 */
  Function : branches_kernel
        /*0000*/                   LDG.E R8, desc[UR4][R2.64] ;          /* 0x0 */
        /*0010*/              @P0  BRA 0x30 ;                            /* 0x0 */
        /*0020*/                   LDG.E R9, desc[UR4][R2.64] ;          /* 0x0 */
        /*0030*/                   LDG.E R10, desc[UR4][R2.64] ;         /* 0x0 */
]]
local said = [[
ptxas info    : Compiling entry function 'two_kernel' for 'sm_90'
ptxas info    : Used 128 registers, used 1 barriers, 8192 bytes smem
ptxas info    : Compiling entry function 'two_kernel' for 'sm_80'
ptxas info    : Used 255 registers
ptxas info    : Compiling entry function 'branches_kernel' for 'sm_90'
ptxas info    : Used 20 registers, used 0 barriers
]]

describe("the table of the GPU's kernels", function()
  it("counts what is asked for before it is used, and the blocks that fit", function()
    local output, status = support.run(("%s %sspec/cuda/kernels.lua %s %s"):format(support.program, support.root,
      support.file("code", code), support.file("said", said)))
    assert.equal(0, status, output)
    assert.matches("\nbranches +20 +8 +4 bytes +8%.0 KB", output)       -- 4 bytes of 8 blocks of 256 threads
    assert.matches("\ntwo +128 +2 +16 bytes +12%.0 KB", output)         -- 24 bytes of 2 blocks
  end)

  it("estimates a step's kernels, and names those whose loads are narrow", function()
    local list = support.file("list", table.concat({ "recording", "launch 1 add two 10 0 0 r:3000000 w:3000000", "node two 1 1",
      "launch 2 fill branches 1 1 0 w:4", "launch 3 add two 1 1 0 r:4 w:4", "node bundle 2 3", "" }, "\n"))
    local output, status = support.run(("%s %sspec/cuda/kernels.lua %s %s %s"):format(support.program, support.root,
      support.file("code", code), support.file("said", said), list))
    assert.equal(0, status, output)
    assert.matches("\ntwo +1 +6000000 +16 +12%.0 KB", output)
    assert.matches("\nbundle +1 +12 +library +3%.1 us", output)        -- a launch, and two turns that wait for memory
    assert.matches("\nloads under 8 bytes: none\n2 launches", output)
    list = support.file("list", "recording\nlaunch 1 fill branches 10 0 0 w:40\nnode branches 1 1\n")
    output = support.run(("%s %sspec/cuda/kernels.lua %s %s %s"):format(support.program, support.root, support.file("code", code),
      support.file("said", said), list))
    assert.matches("\nloads under 8 bytes: branches\n", output)
  end)

  it("says what share of its bytes a kernel asked for by narrow loads, and stored by narrow stores", function()
    local list = support.file("list", table.concat({ "recording", "launch 1 add two 10 0 0 r:3000000 w:3000000", "node two 1 1",
      "widths two add 0 8 8 16 32 0 0 4 0 12", "widths two add 0 0 0 64 0 0 0 0 0 0", "" }, "\n"))
    local output = support.run(("%s %sspec/cuda/kernels.lua %s %s %s"):format(support.program, support.root, support.file("code", code),
      support.file("said", said), list))
    assert.matches("\ntwo +1 +6000000 +16 +13 %% +25 %% +12%.0 KB", output)
    assert.matches("\nloads under 8 bytes: two\n", output)
  end)

  it("has batch normalization's sums read 16 bytes, eight at a time", function()
    local output, status = support.run(("FLOW_BUILD=%s %sscripts/cuda-kernels"):format(build, support.root))
    if status == 3 then return pending((output:gsub("\n$", ""))) end
    assert.equal(0, status, output)
    for _, dtype in ipairs { "float32", "float16", "bfloat16" } do
      local widest, held = output:match("\nbatch_norm_wide_" .. dtype .. " +%d+ +%d+ +(%d+) bytes +([%d.]+) KB")
      assert.equal("16", widest)
      assert.is_true(tonumber(held) >= 8 * 16 * 256 / 1024)
    end
  end)
end)

describe("the GPU's kernels, by their machine code,", function()
  it("ask for 48 bytes of a parameter's numbers at once, and multiply a gradient's factors in two instructions for each product", function()
    local output, status = support.run(("FLOW_BUILD=%s %sscripts/cuda-kernels"):format(build, support.root))
    if status == 3 then return pending((output:gsub("\n$", ""))) end
    for kernel, most in pairs { sgd_update_float32 = 1.5, sgd_update_half_floats = 2, adam_update_float32 = 1.5,
                                adam_update_half_floats = 2 } do
      local held, products = output:match("\n" .. kernel .. " +%d+ +%d+ +16 bytes +([%d.]+) KB +[%d.]+ TB/s +([%d.]+)\n")
      assert.is_true(tonumber(held) >= 18, kernel .. " has " .. held .. " KB in flight")      -- 3 TB/s of 132, that take 800 ns
      assert.is_true(tonumber(products) <= most, kernel .. " takes " .. products .. " instructions")
    end
  end)

  it("wait for the kernel before them where they may start early, before they read anything", function()
    local folder = os.getenv("CUDA_TOOLS")
    local path = "PATH=" .. (folder and folder .. ":" or "") .. "$PATH"
    if support.run(path .. " command -v cuobjdump") == "" then return pending("there is no cuobjdump") end
    local wrong, count = {}, 0
    for target, families in pairs { sm_80 = "constant", sm_90 = "*", sm_100 = "constant" } do
      local found = support.run(("for f in %s/cuda/%s.fatbin; do %s cuobjdump --dump-sass -arch %s $f; done | grep -oE '%s'"):format(build,
        families, path, target, "Function : [a-z0-9_]+|ACQBULK|LDG"))
      for name, body in (found .. "Function"):gmatch("Function : (%S+)\n([^ ]*)%f[F]") do
        local wait, read = body:find("ACQBULK"), body:find("LDG")
        if (wait ~= nil) ~= (target ~= "sm_80") or (wait and read and read < wait) then wrong[#wrong + 1] = name .. " for " .. target end
        count = count + 1
      end
    end
    assert.same({}, wrong)
    assert.is_true(count > 150, count .. " kernels")
  end)
end)

--- The tables of the file: { net =, kernels = { name = { launches, bytes, widest, in flight, narrow loads, narrow stores } },
--- narrow = list of kernels and why, launches =, turns = }.
local function read_estimates()
  local list = {}
  for line in io.lines(support.root .. "spec/cuda/estimates.txt") do
    local net = line:match("^(%l+%d* %d+ %S+)$")
    if net then list[#list + 1] = { net = net, kernels = {}, narrow = {} } end
    local last = list[#list]
    local name, count, bytes, rest = line:match("^(%S+) +(%d+) +(%d+) +(.*) us$")
    if name then
      local widest, shares, held = rest:match("^(%d+) +([%d %%]-) +([%d.]+) KB")
      local loads, stores = (shares or ""):match("(%d+) %% +(%d+) %%")
      last.kernels[name] = { tonumber(count), tonumber(bytes), widest and tonumber(widest) or rest:match("^%l+"), tonumber(held),
                             tonumber(loads), tonumber(stores) }
    end
    if line:find("^loads under 8") then last.narrow[#last.narrow + 1] = line:match(": (.*)$") end
    if line:find("^%d+ launches") then
      last.launches, last.early, last.turns = line:match("^(%d+) launches, (%d+) of which start early, at most (%d+) turns")
    end
  end
  return list
end

--- The most launches of a step of the nets that are to be fast on a GPU, and turns of one launch, one after the other.
local most = { { "flowers 32 mixed_bfloat16", 29, 3 }, { "mnist 64 mixed_bfloat16", 16, 3 }, { "resnet50 256 mixed_bfloat16", 399, 5 },
               { "flowers 32 float32", 29, 3 }, { "mnist 64 float32", 16, 3 }, { "resnet50 256 float32", 398, 5 } }

describe("spec/cuda/estimates.txt", function()
  local estimates = read_estimates()

  for i, limit in ipairs(most) do
    local found = estimates[i]
    it("has few launches and turns, wide loads, and bytes in flight: " .. limit[1], function()
      assert.equal(limit[1], found.net)
      assert.is_true(tonumber(found.launches) <= limit[2], found.launches .. " launches")
      assert.is_true(tonumber(found.turns) <= limit[3], found.turns .. " turns")
      assert.is_true(#found.narrow > 0)
      for _, line in ipairs(found.narrow) do
        local reasoned = line == "none" or line:find("^[%w_]+, since %l") ~= nil
        assert.is_true(reasoned, line .. " reads by loads under 8 bytes, and nobody said why")
      end
      for name, kernel in pairs(found.kernels) do
        local listed = table.concat(found.narrow, "\n"):find("%f[%w_]" .. name .. ", since")
        assert.is_true((kernel[5] or 0) <= 10 or listed ~= nil, name .. " reads by loads under 8 bytes, and is not in the list")
      end
      for name, kernel in pairs(found.kernels) do
        if name ~= "fill" and kernel[3] ~= "library" then assert.is_true(kernel[3] >= 8 and kernel[4] >= 8, name) end
      end
    end)

    it("is of today's launches and bytes: " .. limit[1], function()
      if emulated.missing() then return pending(emulated.missing()) end
      if os.getenv "FLOW_SANITIZED" then return pending("the emulated kernels call the sanitizer, which changes how they read") end
      local path, sums, number = support.file("launches", ""), {}, 0
      local output, status = support.run(("FLOW_EMULATED_WIDTHS=1 FLOW_BUILD=%s FLOW_LIST_LAUNCHES=%s %sscripts/cuda-launches %s"):format(
        build, path, support.root, limit[1]))
      assert.equal(0, status, output)
      local list = launches.read(path)
      assert.equal(tonumber(found.early), launches.early(list))
      for _, launch in ipairs(list) do
        local name = launch.bundled and "bundle" or launch.kernel
        local sum = sums[name] or { 0, 0 }
        sums[name] = sum
        if launch.node > number then number, sum[1] = launch.node, sum[1] + 1 end
        sum[2] = sum[2] + launch.read + launch.written
      end
      local expected = {}
      for name, kernel in pairs(found.kernels) do expected[name] = { kernel[1], kernel[2] } end
      assert.same(expected, sums, "scripts/cuda-kernels --write renews the table")
      local shares = launches.narrow(path)
      for name, kernel in pairs(found.kernels) do
        for which = 1, shares[name] and kernel[5] and 2 or 0 do      -- none where the compiler's own watch is in their place
          assert.is_true(math.abs(shares[name][which] - kernel[4 + which]) <= 1, name .. ": narrow accesses differ from the table's")
        end
      end
    end)
  end

  it("has no early starts where they are forbidden, or where kernels do not wait for each other", function()
    if emulated.missing() then return pending(emulated.missing()) end
    for _, variable in ipairs { "FLOW_CUDA_OVERLAP=0", "FLOW_EMULATED_PTX=80" } do
      local output = support.run(("%s FLOW_BUILD=%s %sscripts/cuda-launches mnist 64 mixed_bfloat16"):format(variable, build, support.root))
      assert.matches("\n%d+ launches and copies, 0 of which start early, ", output)
    end
  end)

  it("is what machine code and counts say: mnist", function()
    if os.getenv "FLOW_SANITIZED" then return pending("the emulated kernels call the sanitizer, which changes how they read") end
    local output, status = support.run(("FLOW_BUILD=%s %sscripts/cuda-kernels %s"):format(build, support.root, most[2][1]))
    if status == 3 then return pending((output:gsub("\n$", ""))) end
    assert.equal(0, status, output)
    assert.is_truthy(support.read(support.root .. "spec/cuda/estimates.txt"):find("\n" .. output, 1, true), output)
  end)
end)

describe("kept results of compiling kernels", function()
  --- A compiler that gives the text of a family's headers, and an assembler's word; bin2c beside it.
  local compiler = [[
#!/bin/sh
case $1 in --version) echo 13; exit ;; -M) echo "$3: $5" >"$3"; exec gcc -M -MF "$3" -MT family -I"$ROOT/kernels" "$ROOT/family.c" ;;
  -E) exec gcc -E -P -I"$ROOT/kernels" "$ROOT/family.c" ;; esac
while [ "$1" != -o ]; do shift; done
cat "$ROOT/kernels/family.h" "$ROOT/kernels/formulas.inc" "$ROOT/kernels/ops.def" >"$2"
]]

  it("are left when a file changes that they are made of, or what they take of a list of ops", function()
    if support.run("command -v cmake") == "" then return pending("there is no cmake") end
    local root = support.folder()
    local function make(path, text) support.write(root .. "/" .. path, text) end
    support.run(("mkdir -p %s/bin %s/kernels/cuda %s/to"):format(root, root, root))
    make("bin/nvcc", compiler)
    make("bin/bin2c", "#!/bin/sh\n")
    make("kernels/family.h", '#include "formulas.inc"\n#include "ops.def"\n')
    make("family.c", '#include "family.h"\n')
    make("kernels/ops.def", "")
    support.run(("chmod +x %s/bin/*"):format(root))
    local function compile(formula)
      make("kernels/formulas.inc", formula)
      local output, status = support.run(("ROOT=%s cmake -DSOURCE=%s -DNVCC=%s/bin/nvcc -DFOLDER=%s/to -DFAMILY=family -DHEADER=family.h "
        .. "-DLIST=LIST -DFLAGS= -DCACHE=%s/cache -P %skernels/cuda/compile.cmake 2>&1"):format(root, root, root, root, root, support.root))
      assert.equal(0, status, output)
      return support.read(root .. "/to/family.fatbin"), support.run(("ls %s/cache/*.fatbin | wc -l"):format(root))
    end
    local text, kept = compile("/* first */\n")
    assert.matches("first", text)
    assert.equal("1\n", kept)
    text, kept = compile("/* second */\n")
    assert.matches("second", text)
    assert.equal("2\n", kept)
    make("kernels/ops.def", "OP(one)\n")
    assert.matches("one", (compile("/* second */\n")))
    make("kernels/ops.def", "OP(one) /* the first */\n")
    assert.not_matches("the first", (compile("/* second */\n")))
    make("kernels/ops.def", "")
    text, kept = compile("/* first */\n")
    assert.matches("first", text)
    assert.equal("3\n", kept)
  end)
end)
