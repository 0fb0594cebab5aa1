-- cuda_build_spec.lua: what the assembler made of the GPU's kernels: every target there, nothing spilled; and what the plugin needs.
local support = require "spec.support.init"

local build = os.getenv("FLOWLUA_LIB"):match("^(.*)/lib/[^/]*$")

local function content(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

-- What the assembler said of all families, and the path of each family's images.
local said, images_of = nil, {}
for path in support.run(("ls %s/cuda/*.fatbin 2>/dev/null"):format(build)):gmatch("[^\n]+") do
  said = (said or "") .. content((path:gsub("fatbin$", "ptxas")))
  images_of[#images_of + 1] = path
end

-- With the reason, these may keep something in the thread's own memory: sine and cosine of numbers beyond 10^5.
local allowed = {}

local function check(name, test)
  it(name, said and test or function() pending("this build has no libflow_cuda.so: the CUDA toolkit (nvcc 13, cuDNN, NCCL) is missing") end)
end

-- kernel -> target -> { stack, stores, loads }: the numbers of bytes
local function kernels()
  local found = {}
  local numbers = "(%d+) bytes stack frame, (%d+) bytes spill stores, (%d+) bytes spill loads"
  local pattern = "Compiling entry function '([%w_]+)' for '([%w_]+)'\n[^\n]+\n%s+" .. numbers
  for entry, target, stack, stores, loads in said:gmatch(pattern) do
    found[entry] = found[entry] or {}
    found[entry][target] = { tonumber(stack), tonumber(stores), tonumber(loads) }
  end
  return found
end

local function number(text, at, bytes)
  local value = 0
  for i = bytes - 1, 0, -1 do value = value * 256 + text:byte(at + i) end
  return value
end

describe("the GPU's kernels", function()
  check("are compiled for every target", function()
    local count = 0
    for name, targets in pairs(kernels()) do
      for _, target in ipairs { "sm_80", "sm_90", "sm_100" } do assert.truthy(targets[target], name .. " for " .. target) end
      count = count + 1
    end
    local _, entries = said:gsub("Compiling entry function", "")
    assert.equal(entries, 3 * count)
    assert.truthy(count > 0)
  end)

  check("keep everything in registers", function()
    local spilled = {}
    for name, targets in pairs(kernels()) do
      for target, bytes in pairs(targets) do
        if not allowed[name] and bytes[1] + bytes[2] + bytes[3] > 0 then
          spilled[#spilled + 1] = ("%s, %s: stack frame %d, spill stores %d, spill loads %d bytes"):format(name, target, unpack(bytes))
        end
      end
    end
    table.sort(spilled)
    assert.equal("", table.concat(spilled, "\n"))
  end)

  -- A file of nvcc's: 16 bytes, then for each image its kind (2 bytes: 1 is PTX, 2 machine code), 2 of version, the sizes of its own
  -- header (4) and of what follows (8), and, 28 bytes in, the target (4).
  check("are there as machine code for 80, 90 and 100 and as PTX for 80 and newer", function()
    for _, path in ipairs(images_of) do
      local fatbin = content(path)
      assert.equal(0xba55ed50, number(fatbin, 1, 4))
      local images, at, size = {}, 17, 16 + number(fatbin, 9, 8)
      assert.equal(#fatbin, size)
      while at < size do
        images[#images + 1] = ("%s %d"):format(number(fatbin, at, 2) == 1 and "PTX" or "code", number(fatbin, at + 28, 4))
        at = at + number(fatbin, at + 4, 4) + number(fatbin, at + 8, 8)
      end
      table.sort(images)
      assert.same({ "PTX 80", "code 100", "code 80", "code 90" }, images, path)
    end
  end)
end)

describe("libflow_cuda.so", function()
  check("needs the C library alone and shows its table alone", function()
    if os.getenv "FLOW_SANITIZED" then return pending("a build with sanitizers needs their libraries, too") end
    local path = build .. "/lib/libflow_cuda.so"
    for name in support.run("readelf -d " .. path):gmatch("NEEDED[^%[]*%[([^%]]+)%]") do
      assert.truthy(name:find("^libc%.") or name:find("^libm%.") or name:find("^libdl%.") or name:find("^ld%-linux")
        or name:find("^librt%.") or name:find("^libpthread%."), name)
    end
    local symbols = {}
    for name in support.run("nm -D --defined-only " .. path):gmatch("%x+ %a ([%w_]+)") do symbols[#symbols + 1] = name end
    assert.same({ "flow_plugin_table" }, symbols)
  end)
end)
