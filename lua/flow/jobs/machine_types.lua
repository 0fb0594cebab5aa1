-- machine_types.lua: the machines that training services lend and how many GPUs each takes.
--
-- Sources: "Using GPUs for training models in the cloud" and "Specifying machine types" of AI Platform Training; "Configure compute
-- resources for custom training" of Vertex AI, which has the same table for N1 and A2 machines, and more families.

local machines = {}

local K, P, V = { 1, 2, 4, 8 }, { 1, 2, 4 }, { 1, 2, 4, 8 }      -- all that a kind of GPU comes in
local FROM_2, FROM_4, FROM_2_OF_4 = { 2, 4, 8 }, { 4, 8 }, { 2, 4 }

-- What N1 machines take, by the number of their processors: the most that a GPU comes with.
local function row(k80, p4, p100, t4, v100)
  return { NVIDIA_TESLA_K80 = k80, NVIDIA_TESLA_P4 = p4, NVIDIA_TESLA_P100 = p100, NVIDIA_TESLA_T4 = t4, NVIDIA_TESLA_V100 = v100 }
end
local UP_TO_8, WITH_16 = row(K, P, P, P, V), row(FROM_2, P, P, P, FROM_2)
local WITH_32 = row(FROM_4, FROM_2_OF_4, FROM_2_OF_4, FROM_2_OF_4, FROM_4)
local WITH_64 = row(nil, { 4 }, nil, { 4 }, { 8 })

-- By the name of the machine: counts by the name of the GPU.
machines.gpus = {
  ["n1-standard-4"] = UP_TO_8, ["n1-standard-8"] = UP_TO_8, ["n1-standard-16"] = WITH_16, ["n1-standard-32"] = WITH_32,
  ["n1-standard-64"] = WITH_64, ["n1-standard-96"] = WITH_64,
  ["n1-highmem-2"] = UP_TO_8, ["n1-highmem-4"] = UP_TO_8, ["n1-highmem-8"] = UP_TO_8, ["n1-highmem-16"] = WITH_16,
  ["n1-highmem-32"] = WITH_32, ["n1-highmem-64"] = WITH_64, ["n1-highmem-96"] = WITH_64,
  ["n1-highcpu-16"] = WITH_16, ["n1-highcpu-32"] = WITH_32, ["n1-highcpu-64"] = row({ 8 }, { 4 }, { 4 }, { 4 }, { 8 }),
  ["n1-highcpu-96"] = WITH_64,
  ["a2-highgpu-1g"] = { NVIDIA_TESLA_A100 = { 1 } }, ["a2-highgpu-2g"] = { NVIDIA_TESLA_A100 = { 2 } },
  ["a2-highgpu-4g"] = { NVIDIA_TESLA_A100 = { 4 } }, ["a2-highgpu-8g"] = { NVIDIA_TESLA_A100 = { 8 } },
  ["a2-megagpu-16g"] = { NVIDIA_TESLA_A100 = { 16 } },
}

-- Of Vertex AI only.
local more = {
  ["a2-ultragpu-1g"] = { NVIDIA_A100_80GB = { 1 } }, ["a2-ultragpu-2g"] = { NVIDIA_A100_80GB = { 2 } },
  ["a2-ultragpu-4g"] = { NVIDIA_A100_80GB = { 4 } }, ["a2-ultragpu-8g"] = { NVIDIA_A100_80GB = { 8 } },
  ["a3-highgpu-8g"] = { NVIDIA_H100_80GB = { 8 } },
  ["g2-standard-4"] = { NVIDIA_L4 = { 1 } }, ["g2-standard-8"] = { NVIDIA_L4 = { 1 } }, ["g2-standard-12"] = { NVIDIA_L4 = { 1 } },
  ["g2-standard-16"] = { NVIDIA_L4 = { 1 } }, ["g2-standard-32"] = { NVIDIA_L4 = { 1 } }, ["g2-standard-24"] = { NVIDIA_L4 = { 2 } },
  ["g2-standard-48"] = { NVIDIA_L4 = { 4 } }, ["g2-standard-96"] = { NVIDIA_L4 = { 8 } },
}

-- Machines that take no GPU: the family, its kinds and numbers of processors.
local PLAIN = {
  { "e2-standard", 4, 8, 16, 32 }, { "e2-highmem", 2, 4, 8, 16 }, { "e2-highcpu", 16, 32 },
  { "n2-standard", 4, 8, 16, 32, 48, 64, 80 }, { "n2-highmem", 2, 4, 8, 16, 32, 48, 64, 80 }, { "n2-highcpu", 16, 32, 48, 64, 80 },
  { "n2d-standard", 4, 8, 16, 32, 48, 64, 80, 96, 128, 224 }, { "c2-standard", 4, 8, 16, 30, 60 }, { "m1-ultramem", 40, 80, 160 },
  { "m1-megamem", 96 },
}

-- AI Platform's own names: how many GPUs of which kind are in each.
machines.legacy = {
  standard = {}, large_model = {}, complex_model_s = {}, complex_model_m = {}, complex_model_l = {},
  standard_gpu = { "NVIDIA_TESLA_K80", 1 }, complex_model_m_gpu = { "NVIDIA_TESLA_K80", 4 },
  complex_model_l_gpu = { "NVIDIA_TESLA_K80", 8 }, standard_p100 = { "NVIDIA_TESLA_P100", 1 },
  complex_model_m_p100 = { "NVIDIA_TESLA_P100", 4 }, standard_v100 = { "NVIDIA_TESLA_V100", 1 },
  large_model_v100 = { "NVIDIA_TESLA_V100", 1 }, complex_model_m_v100 = { "NVIDIA_TESLA_V100", 4 },
  complex_model_l_v100 = { "NVIDIA_TESLA_V100", 8 },
}
machines.TPU = "cloud_tpu"

-- What a scale tier is made of where that has its own name.
machines.tiers = {
  BASIC = {}, BASIC_GPU = { gpu = "NVIDIA_TESLA_K80", count = 1 }, STANDARD_1 = { servers = true }, PREMIUM_1 = { servers = true },
  BASIC_TPU = { tpu = true }, CUSTOM = { custom = true },
}

-- The machines that a service knows, as a table of names: what GPUs they take.
function machines.of(service)
  local names = {}
  for name, gpus in pairs(machines.gpus) do names[name] = gpus end
  if service == "vertex" then
    for name, gpus in pairs(more) do names[name] = gpus end
    for _, family in ipairs(PLAIN) do
      for i = 2, #family do names[("%s-%d"):format(family[1], family[i])] = {} end
    end
  end
  return names
end

-- The GPUs that a service knows, as a table of names.
function machines.gpu_names(service)
  local names = {}
  for _, gpus in pairs(machines.of(service)) do
    for name in pairs(gpus) do names[name] = true end
  end
  return names
end

-- The counts next to one that is not among them: one below and one above, as far as they are there.
function machines.nearest(counts, count)
  local below, above
  for _, valid in ipairs(counts) do
    if valid < count then below = valid elseif not above then above = valid end
  end
  if below and above and count - below ~= above - count then return { count - below < above - count and below or above } end
  return below and above and { below, above } or { below or above }
end

-- How a flag of gcloud writes a GPU, "nvidia-tesla-t4", as files do: NVIDIA_TESLA_T4.
function machines.gpu_of_flag(text)
  return (text:upper():gsub("%-", "_"))
end

return machines
