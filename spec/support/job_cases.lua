-- job_cases.lua: configurations of jobs, in the form of AI Platform and of Vertex AI, and what flowlua submit says of them.
local cases = {}

local CUSTOM = "trainingInput:\n  scaleTier: CUSTOM\n  region: us-central1\n"
local IMAGE = "  masterConfig: {imageUri: gcr.io/p/flowlua:1}\n"
local M = CUSTOM .. "  masterType: n1-standard-8\n" .. IMAGE                     -- a master
local W = M .. "  workerCount: 2\n  workerType: n1-standard-8\n"                 -- with workers
local P, V = "worker_pool_specs:\n", "--region us-central1"                      -- pools of Vertex AI

-- A master with GPUs, and the lines that follow.
function cases.gpus(machine, count, gpu, rest)
  local text = "%s  masterType: %s\n  masterConfig:\n    imageUri: i\n    acceleratorConfig:\n      count: %s\n      type: %s\n%s"
  return text:format(CUSTOM, machine, count, gpu, rest or "")
end

local gpus = cases.gpus

-- A pool of Vertex AI; accelerator: { type, count }.
local function pool(machine, replicas, accelerator)
  local with = accelerator and (", accelerator_type: %s, accelerator_count: %d"):format(accelerator[1], accelerator[2]) or ""
  return ("- machine_spec: {machine_type: %s%s}\n  replica_count: %d\n  container_spec: {image_uri: i}\n"):format(machine, with, replicas)
end

-- A configuration, flags, and what is said; nothing: the job is accepted unchanged. The script is train.lua, if none is named.
cases.list = {
  { M },
  { W },
  { "trainingInput: {region: us-central1}", says = {
    "config.yaml:1: master has no image: --image IMAGE, or imageUri in the configuration",
  } },
  { "trainingInput: {region: us-central1, scaleTier: BASIC_GPU}", says = {
    "config.yaml:1: master has no image: --image IMAGE, or imageUri in the configuration",
  } },
  { "trainingInput: {region: us-central1, scaleTier: STANDARD_1}", says = {
    "config.yaml:1: warning: scaleTier STANDARD_1 comes with parameter servers, for which a synchronous strategy has no use: with" ..
    " CUSTOM a job has the machines that it names",
    "config.yaml:1: master has no image: --image IMAGE, or imageUri in the configuration",
  } },
  { "trainingInput: {region: us-central1, scaleTier: PREMIUM_1}", says = {
    "config.yaml:1: warning: scaleTier PREMIUM_1 comes with parameter servers, for which a synchronous strategy has no use: with" ..
    " CUSTOM a job has the machines that it names",
    "config.yaml:1: master has no image: --image IMAGE, or imageUri in the configuration",
  } },
  { "trainingInput: {region: us-central1, scaleTier: BASIC_TPU}", says = {
    "config.yaml:1: scaleTier is BASIC_TPU: flowlua computes on CPUs and NVIDIA's GPUs",
  } },
  { "trainingInput: {region: us-central1, scaleTier: basic-gpu}", says = {
    'config.yaml:1: scaleTier is "basic-gpu": there is no such tier; the nearest name is BASIC_GPU',
  } },
  { "trainingInput: {region: us-central1, scaleTier: HUGE}", says = {
    'config.yaml:1: scaleTier is "HUGE": there is no such tier; there are BASIC, BASIC_GPU, BASIC_TPU, CUSTOM, PREMIUM_1, STANDARD_1',
  } },
  { "trainingInput: {scaleTier: CUSTOM}", says = {
    "config.yaml:1: masterType is missing: with scaleTier CUSTOM it says which machine the master is, e.g. n1-standard-4",
    "the region is missing: trainingInput.region, or --region us-central1",
  } },
  { "trainingInput:\n  region: us-central1\n  masterType: n1-standard-4\n", says = {
    "config.yaml:3: masterType goes with scaleTier CUSTOM, without one it is BASIC",
  } },
  { "trainingInput:\n  region: us-central1\n  scaleTier: BASIC\n  workerCount: 2\n  workerType: n1-standard-4\n", says = {
    "config.yaml:5: workerType goes with scaleTier CUSTOM, here it is BASIC",
    "config.yaml:4: workerCount goes with scaleTier CUSTOM, here it is BASIC",
  } },
  { "trainingInput:\n  region: us-central1\n  scaleTier: BASIC\n" .. IMAGE },
  {
    "trainingInput:\n  region: us-central1\n  scaleTier: BASIC\n" ..
      "  masterConfig: {acceleratorConfig: {count: 1, type: NVIDIA_TESLA_T4}}\n", says = {
    "config.yaml:4: masterConfig goes with scaleTier CUSTOM, here it is BASIC",
  } },
  { M .. "  workerCount: 2\n", says = {
    "config.yaml:6: workerCount is 2, but workerType does not say on which machines, e.g. n1-standard-4",
  } },
  { M .. "  workerType: n1-standard-4\n", says = {
    "config.yaml:6: workerType is n1-standard-4, but workerCount does not say how many",
  } },
  { M .. "  parameterServerCount: 1\n", says = {
    "config.yaml:6: parameterServerCount is 1, but parameterServerType does not say on which machines, e.g. n1-standard-4",
  } },
  { M .. "  evaluatorCount: 1\n", says = {
    "config.yaml:6: evaluatorCount is 1, but evaluatorType does not say on which machines, e.g. n1-standard-4",
  } },
  { M .. "  evaluatorCount: 2\n  evaluatorType: n1-standard-4\n", says = {
    "config.yaml:6: warning: evaluatorCount is 2: a second evaluator repeats what the first one does",
  } },
  { M .. "  workerCount: -1\n  workerType: n1-standard-4\n", says = {
    'config.yaml:6: workerCount is "-1", it should be a whole number from 0',
  } },
  { M .. "  workerCount: two\n  workerType: n1-standard-4\n", says = {
    'config.yaml:6: workerCount is "two", it should be a whole number from 0',
  } },
  { M .. "  workerCount: '2'\n  workerType: n1-standard-4\n" },
  { M .. "  workerCount: 99999\n  workerType: n1-standard-4\n", says = {
    "config.yaml:6: workerCount is 99999, at most 16384 are possible",
  } },
  { M .. "  workerCont: 2\n", says = { "config.yaml:6: workerCont is not known: workerCount is meant?" } },
  { M .. "  worker_count: 2\n", says = { "config.yaml:6: worker_count is not known: workerCount is meant?" } },
  { M .. "  imageUri: x\n", says = { "config.yaml:6: imageUri is not known: it stands in masterConfig, workerConfig, ..." } },
  { (M:gsub("imageUri", "imageURI")), says = { "config.yaml:5: masterConfig.imageURI is not known: imageUri is meant?" } },
  { M .. "  foo: 1\n", says = {
    "config.yaml:6: foo is not known: trainingInput has args, enableWebAccess, encryptionConfig, evaluatorConfig, evaluatorCount," ..
    " evaluatorType, hyperparameters, jobDir, masterConfig, masterType, network, packageUris, parameterServerConfig," ..
    " parameterServerCount, parameterServerType, pythonModule, pythonVersion, region, runtimeVersion, scaleTier, scheduling," ..
    " serviceAccount, useChiefInTfConfig, workerConfig, workerCount, workerType",
  } },
  { "workerCount: 1\n", says = { "config.yaml:1: workerCount is not known: it stands in trainingInput" } },
  { "predictionInput: {}\n", says = { "config.yaml:1: predictionInput is not known: flowlua submits training jobs" } },
  { "{}", says = { "config.yaml:1: trainingInput is missing" } },
  { "trainingInput: [1]", says = { "config.yaml:1: trainingInput is a list, it should be a map" } },
  { "[1]", says = { "config.yaml:1 is a list, it should be a map: trainingInput: or workerPoolSpecs:" } },
  { (M:gsub("n1%-standard%-8", "n1-standard-7")), says = {
    'config.yaml:4: masterType is "n1-standard-7": there is no such machine; the nearest name is n1-standard-4',
  } },
  { (M:gsub("n1%-standard%-8", "n2-standard-8")), says = {
    'config.yaml:4: masterType is "n2-standard-8": there is no such machine; the nearest name is n1-standard-8',
  } },
  { (M:gsub("n1%-standard%-8", "xxl")), says = {
    'config.yaml:4: masterType is "xxl": there is no such machine; names are as n1-standard-4, n1-highmem-8, n1-highcpu-16,' ..
    ' a2-highgpu-1g',
  } },
  { (M:gsub("n1%-standard%-8", "cloud_tpu")), says = {
    "config.yaml:4: masterType is cloud_tpu: flowlua computes on CPUs and NVIDIA's GPUs",
  } },
  { (M:gsub("n1%-standard%-8", "complex_model_m_gpu")) },
  { (M:gsub("n1%-standard%-8", "complex_model_m")) .. "  workerCount: 1\n  workerType: n1-standard-4\n", says = {
    "config.yaml:7: workerType is n1-standard-4 and masterType complex_model_m: complex_model_m is one of AI Platform's own" ..
    " machines, and those do not go with Compute Engine's in one job",
  } },
  { gpus("standard", 1, "NVIDIA_TESLA_T4"), says = {
    "config.yaml:8: masterConfig.acceleratorConfig goes with machines of Compute Engine: standard is one of AI Platform's own;" ..
    " n1-standard-8 takes GPUs, for instance",
  } },
  { gpus("standard_gpu", 1, "NVIDIA_TESLA_T4"), says = {
    "config.yaml:8: masterConfig.acceleratorConfig goes with machines of Compute Engine: standard_gpu is one of AI Platform's" ..
    " own, with 1 NVIDIA_TESLA_K80 in it",
  } },
  { gpus("n1-highcpu-16", 3, "NVIDIA_TESLA_T4"), says = {
    "config.yaml:8: masterConfig.acceleratorConfig.count is 3: n1-highcpu-16 takes 1, 2 or 4 NVIDIA_TESLA_T4; the nearest are 2 and 4",
  } },
  { gpus("n1-standard-32", 1, "NVIDIA_TESLA_V100"), says = {
    "config.yaml:8: masterConfig.acceleratorConfig.count is 1: n1-standard-32 takes 4 or 8 NVIDIA_TESLA_V100; the nearest is 4;" ..
    " n1-standard-8 takes 1",
  } },
  { gpus("n1-standard-32", 2, "NVIDIA_TESLA_V100"), says = {
    "config.yaml:8: masterConfig.acceleratorConfig.count is 2: n1-standard-32 takes 4 or 8 NVIDIA_TESLA_V100; the nearest is 4;" ..
    " n1-standard-16 takes 2",
  } },
  { gpus("n1-standard-8", 16, "NVIDIA_TESLA_K80"), says = {
    "config.yaml:8: masterConfig.acceleratorConfig.count is 16: n1-standard-8 takes 1, 2, 4 or 8 NVIDIA_TESLA_K80; the nearest is 8",
  } },
  { gpus("n1-standard-64", 4, "NVIDIA_TESLA_P100"), says = {
    "config.yaml:9: masterConfig.acceleratorConfig.type is NVIDIA_TESLA_P100: n1-standard-64 takes NVIDIA_TESLA_P4," ..
    " NVIDIA_TESLA_T4 or NVIDIA_TESLA_V100; the nearest machine with 4 NVIDIA_TESLA_P100 is n1-standard-32",
  } },
  { gpus("n1-standard-8", 1, "NVIDIA_TESLA_A100"), says = {
    "config.yaml:9: masterConfig.acceleratorConfig.type is NVIDIA_TESLA_A100: n1-standard-8 takes NVIDIA_TESLA_K80," ..
    " NVIDIA_TESLA_P100, NVIDIA_TESLA_P4, NVIDIA_TESLA_T4 or NVIDIA_TESLA_V100; the nearest machine with 1 NVIDIA_TESLA_A100 is" ..
    " a2-highgpu-1g",
  } },
  { gpus("a2-highgpu-2g", 1, "NVIDIA_TESLA_A100"), says = {
    "config.yaml:8: masterConfig.acceleratorConfig.count is 1: a2-highgpu-2g takes 2 NVIDIA_TESLA_A100; the nearest is 2;" ..
    " a2-highgpu-1g takes 1",
  } },
  { gpus("a2-megagpu-16g", 16, "NVIDIA_TESLA_A100") },
  { gpus("n1-standard-8", 1, "nvidia-tesla-t4"), says = {
    'config.yaml:9: masterConfig.acceleratorConfig.type is "nvidia-tesla-t4": there is no such GPU; the nearest name is' ..
    ' NVIDIA_TESLA_T4',
  } },
  { gpus("n1-standard-8", 1, "NVIDIA_TESLA_T5"), says = {
    'config.yaml:9: masterConfig.acceleratorConfig.type is "NVIDIA_TESLA_T5": there is no such GPU; the nearest name is' ..
    ' NVIDIA_TESLA_T4',
  } },
  { gpus("n1-standard-8", 1, "H100"), says = {
    'config.yaml:9: masterConfig.acceleratorConfig.type is "H100": there is no such GPU; there are NVIDIA_TESLA_A100,' ..
    ' NVIDIA_TESLA_K80, NVIDIA_TESLA_P100, NVIDIA_TESLA_P4, NVIDIA_TESLA_T4 and NVIDIA_TESLA_V100',
  } },
  { gpus("n1-standard-8", 0, "NVIDIA_TESLA_T4"), says = {
    "config.yaml:8: masterConfig.acceleratorConfig.count is 0: leave it out for a machine without GPUs",
  } },
  { CUSTOM .. "  masterType: a2-highgpu-1g\n" .. IMAGE, says = {
    "config.yaml:4: masterType is a2-highgpu-1g, which comes with 1 NVIDIA_TESLA_A100: the GPUs have to be asked for",
  } },
  { (M:gsub("}", ", acceleratorConfig: {count: 2}}")), says = {
    "config.yaml:5: masterConfig.acceleratorConfig.type is missing: which GPUs are the 2?",
  } },
  { (M:gsub("}", ", acceleratorConfig: {type: NVIDIA_TESLA_T4}}")), says = {
    "config.yaml:5: masterConfig.acceleratorConfig.count is missing: how many NVIDIA_TESLA_T4 has the machine?",
  } },
  { (M:gsub("us%-central1", "us-central2")), says = {
    'config.yaml:3: region is "us-central2": there is no such region; the nearest name is us-central1',
  } },
  { (M:gsub("us%-central1", "moon")), says = {
    'config.yaml:3: region is "moon": there is no such region; names are as us-central1, europe-west4',
  } },
  { (M:gsub("us%-central1", "europe-west3")) },
  { (gpus("n1-standard-8", 1, "NVIDIA_TESLA_T4"):gsub("us%-central1", "us-west3")), says = {
    "config.yaml:3: region is us-west3, where there is no NVIDIA_TESLA_T4; regions with it: us-central1, us-east1, us-east4," ..
    " us-west1 and us-west2",
  } },
  { (gpus("n1-standard-8", 1, "NVIDIA_TESLA_V100"):gsub("us%-central1", "us-west2")), says = {
    "config.yaml:3: region is us-west2, where there is no NVIDIA_TESLA_V100; regions with it: us-central1, us-east1 and us-west1",
  } },
  {
    gpus("n1-standard-8", 1, "NVIDIA_TESLA_T4", "  workerCount: 1\n  workerType: n1-standard-8\n" ..
      "  workerConfig: {acceleratorConfig: {count: 1, type: NVIDIA_TESLA_P100}}\n" ..
      "  parameterServerCount: 1\n  parameterServerType: n1-standard-8\n" ..
      "  parameterServerConfig: {acceleratorConfig: {count: 1, type: NVIDIA_TESLA_K80}}\n"), says = {
    "config.yaml:3: region is us-central1, which has no zone with all GPUs of the job: there are NVIDIA_TESLA_T4 in" ..
    " us-central1-a, us-central1-b and us-central1-f, NVIDIA_TESLA_P100 in us-central1-c and us-central1-f and NVIDIA_TESLA_K80" ..
    " in us-central1-a and us-central1-c; they are together in us-east1 and us-west1",
  } },
  {
    gpus("n1-standard-8", 1, "NVIDIA_TESLA_T4", "  workerCount: 1\n  workerType: n1-standard-8\n" ..
      "  workerConfig: {acceleratorConfig: {count: 1, type: NVIDIA_TESLA_V100}}\n") },
  {
    gpus("n1-standard-8", 1, "NVIDIA_TESLA_T4", "  workerCount: 1\n  workerType: n1-standard-8\n" ..
      "  workerConfig: {acceleratorConfig: {count: 2, type: NVIDIA_TESLA_T4}}\n"), says = {
    "config.yaml:12: master has 1 GPU, worker has 2 GPUs: all workers of a synchronous strategy need the same number",
  } },
  { gpus("n1-standard-8", 1, "NVIDIA_TESLA_T4", "  workerCount: 1\n  workerType: n1-standard-8\n"), says = {
    "config.yaml:10: master has 1 GPU, worker has 0 GPUs: all workers of a synchronous strategy need the same number",
  } },
  {
    gpus("n1-standard-8", 1, "NVIDIA_TESLA_T4", "  workerCount: 1\n  workerType: n1-standard-8\n" ..
      "  parameterServerCount: 1\n  parameterServerType: n1-standard-8\n") },
  { M .. "  runtimeVersion: '2.11'\n", says = {
    "config.yaml:6: runtimeVersion and masterConfig.imageUri exclude each other: the image is the run-time; keep one",
  } },
  { M .. "  packageUris: [gs://b/p.tar.gz]\n", says = {
    "config.yaml:6: packageUris and masterConfig.imageUri exclude each other: what the program needs is in the image",
  } },
  { CUSTOM .. "  masterType: n1-standard-4\n  runtimeVersion: '2.11'\n  packageUris: [gs://b/p.tar.gz]\n", says = {
    "config.yaml:6: pythonModule is missing: which module of the packages is the program?",
  } },
  {
    CUSTOM .. "  masterType: n1-standard-4\n  runtimeVersion: 1.15\n  pythonModule: trainer.task\n" ..
      "  pythonVersion: '3.7'\n  workerCount: 1\n  workerType: n1-standard-4\n", says = {
    "config.yaml:5: warning: runtimeVersion 1.15 calls the first of several workers master, not chief, in TF_CONFIG: take 2.1 or" ..
    " later, or set useChiefInTfConfig: true",
  } },
  {
    CUSTOM .. "  masterType: n1-standard-4\n  runtimeVersion: 1.15\n  pythonModule: trainer.task\n" ..
      "  useChiefInTfConfig: true\n  workerCount: 1\n  workerType: n1-standard-4\n" },
  {
    CUSTOM .. "  masterType: n1-standard-4\n  runtimeVersion: 2.1\n  pythonModule: trainer.task\n" ..
      "  workerCount: 1\n  workerType: n1-standard-4\n" },
  {
    CUSTOM .. "  masterType: n1-standard-4\n  runtimeVersion: two\n  pythonModule: trainer.task\n" ..
      "  pythonVersion: 3\n", says = {
    'config.yaml:5: runtimeVersion is "two", it should be two numbers, such as \'2.11\'',
    'config.yaml:7: pythonVersion is "3", it should be two numbers, such as \'3.7\'',
  } },
  { M .. "  useChiefInTfConfig: maybe\n", says = { 'config.yaml:6: useChiefInTfConfig is "maybe", it should be true or false' } },
  { M .. "  args: --epochs 3\n", says = { 'config.yaml:6: args is "--epochs 3", it should be a list of texts: ["a", "b"]' } },
  { M .. "  args: [--epochs, 3]\n" },
  { M .. "  jobDir: gs://bucket/job\n" },
  { M .. "  jobDir: /tmp/job\n", says = {
    'config.yaml:6: jobDir is "/tmp/job", it should be a folder of a bucket: gs://BUCKET/FOLDER',
  } },
  { M .. "  jobDir: gs:/bucket\n", "--backend kubernetes", says = {
    'config.yaml:6: jobDir is "gs:/bucket": a bucket is written gs://BUCKET/FOLDER',
  } },
  { M .. "  scheduling: {maxRunningTime: 7200}\n", says = {
    'config.yaml:6: scheduling.maxRunningTime is "7200", it should be seconds with an s, such as 7200s',
  } },
  { M .. "  scheduling: {maxRunningTime: 0s}\n", says = {
    "config.yaml:6: scheduling.maxRunningTime is 0: the job would end before it begins",
  } },
  { M .. "  scheduling: {maxRuningTime: 1s}\n", says = {
    "config.yaml:6: scheduling.maxRuningTime is not known: maxRunningTime is meant?",
  } },
  { (M:gsub("imageUri", "tpuTfVersion: '2.1', imageUri")), says = {
    "config.yaml:5: masterConfig.tpuTfVersion is set, but flowlua computes on CPUs and NVIDIA's GPUs",
  } },
  { (M:gsub("}", ", diskConfig: {bootDiskType: ssd, bootDiskSizeGb: 100}}")), says = {
    'config.yaml:5: masterConfig.diskConfig.bootDiskType is "ssd", disks are pd-ssd and pd-standard',
  } },
  { (M:gsub("  region: us%-central1\n", "")), says = { "the region is missing: trainingInput.region, or --region us-central1" } },
  { M:gsub("  region: us%-central1\n", ""), "--region us-east1" },
  { M .. "  masterType: x\n", says = { 'config.yaml:6:3: "masterType" is given a second time: keep one' } },
  -- flags
  { M, "--worker-count 2 --worker-machine-type n1-standard-16" },
  { M, "--worker-count 2", says = {
    "--worker-count: workerCount is 2, but workerType does not say on which machines, e.g. n1-standard-4",
  } },
  { M, "--workerCount 2", says = {
    "--workerCount: workerCount is 2, but workerType does not say on which machines, e.g. n1-standard-4",
  } },
  { M, "--master-accelerator count=3,type=nvidia-tesla-t4", says = {
    "--master-accelerator: masterConfig.acceleratorConfig.count is 3: n1-standard-8 takes 1, 2 or 4 NVIDIA_TESLA_T4; the nearest" ..
    " are 2 and 4",
  } },
  { M, "--master-accelerator 3", says = { '--master-accelerator is written count=4,type=nvidia-tesla-t4, got "3"' } },
  { M, "--scale-tier basic-gpu", says = { "config.yaml:4: masterType goes with scaleTier CUSTOM, here it is BASIC_GPU" } },
  { M, "--scale-teir basic", says = {
    'unknown option --scale-teir; did you mean "scale-tier"? (arguments of the script come after --)',
  } },
  { M, "--max-running-time 2h" },
  { M, "--max-running-time soon", says = { '--max-running-time is a time such as 7200s, 120m or 2h, got "soon"' } },
  { M, "--config", says = { "--config needs a value" } },
  { M, "--backend k8s", says = {
    'there is no back end "k8s". There are ai-platform, compose, kubeflow, kubernetes, local, pai-dlc, slurm, vertex',
  } },
  { M, "--backend kubernetes --restart-policy Always", says = {
    "--restart-policy: Always: pods of a Job are restarted Never or OnFailure",
  } },
  { M, "--backend kubernetes --mount x --env 1=2", says = {
    '--env: "1=2" is not NAME=VALUE',
    '--mount: "x" is not one of /FOLDER:/PATH, nfs://SERVER/EXPORT:/PATH, gs://BUCKET[:/PATH], pvc:CLAIM:/PATH, with :ro for read only',
  } },
  { M, "--backend kubernetes --git-url https://token@github.com/a/b", says = {
    "--git-url: the URL has a user or a token in it, which would stand in files: put the token into the variable GIT_TOKEN",
  } },
  { M, "--backend kubernetes --git-branch x", says = { "--git-branch: goes with --git-url: of which repository?" } },
  { nil, "--backend kubernetes train.lua", says = { "master has no image: --image IMAGE, or imageUri in the configuration" } },
  { nil, "--backend slurm train.lua" },
  { nil, "--backend slurm --worker-count 2 train.lua --epochs", says = {
    "unknown option --epochs (arguments of the script come after --)",
  } },
  { nil, "--backend slurm --worker-count 2 train.lua epochs", says = {
    '"epochs": arguments of the script come after --: flowlua submit job train.lua -- epochs',
  } },
  { nil, "--backend slurm", script = false, says = { "Slurm starts a script, not an image: flowlua submit NAME ... train.lua" } },
  { nil, "--backend ai-platform --region us-central1", says = { "master has no image: --image IMAGE, or imageUri in the configuration" } },
  -- vertex
  { P .. pool("n1-standard-8", 1), V },
  { P .. pool("n1-standard-8", 1) .. pool("n1-standard-8", 3), V },
  { P .. pool("n1-standard-8", 2), V, says = {
    "config.yaml:3: worker_pool_specs[0].replica_count is 2: the first pool is the chief, of which there is 1; workers are the" ..
    " second pool",
  } },
  { P .. pool("n1-standard-8", 1) .. pool("n1-standard-8", 0), V, says = {
    "config.yaml:6: worker_pool_specs[1].replica_count is 0: a pool that is left out is written {}",
  } },
  { P .. pool("n1-standard-8", 1) .. "- {}\n" .. pool("n1-standard-8", 2), V },
  { P .. "- {}\n" .. pool("n1-standard-8", 2), V, says = {
    "config.yaml:2: worker_pool_specs[0] is empty: the first pool is the chief",
  } },
  { P .. pool("n1-standard-8", 1):rep(5), V, says = {
    "config.yaml:14: worker_pool_specs[4]: a job has at most 4 pools: the chief, the workers, the parameter servers, the evaluators",
  } },
  { P .. pool("n1-standard-8", 1, {"NVIDIA_TESLA_T4", 3}), V, says = {
    "config.yaml:2: worker_pool_specs[0].machine_spec.accelerator_count is 3: n1-standard-8 takes 1, 2 or 4 NVIDIA_TESLA_T4; the" ..
    " nearest are 2 and 4",
  } },
  { P .. pool("n1-standard-8", 1, {"NVIDIA_TESLA_T4", 1}) .. pool("n1-standard-8", 1, {"NVIDIA_TESLA_T4", 2}), V, says = {
    "config.yaml:5: worker_pool_specs[0] has 1 GPU, worker_pool_specs[1] has 2 GPUs: all workers of a synchronous strategy need" ..
    " the same number",
  } },
  { P .. pool("g2-standard-24", 1, {"NVIDIA_L4", 1}), V, says = {
    "config.yaml:2: worker_pool_specs[0].machine_spec.accelerator_count is 1: g2-standard-24 takes 2 NVIDIA_L4; the nearest is 2;" ..
    " g2-standard-16 takes 1",
  } },
  { P .. pool("e2-standard-4", 1, {"NVIDIA_L4", 1}), V, says = {
    "config.yaml:2: worker_pool_specs[0].machine_spec.accelerator_type is NVIDIA_L4: e2-standard-4 takes no GPUs; the nearest" ..
    " machine with 1 NVIDIA_L4 is g2-standard-4",
  } },
  { P .. pool("g2-standard-4", 1), V, says = {
    "config.yaml:2: worker_pool_specs[0].machine_spec.machine_type is g2-standard-4, which comes with 1 NVIDIA_L4: the GPUs have" ..
    " to be asked for",
  } },
  { P .. pool("e2-standard-5", 1), V, says = {
    'config.yaml:2: worker_pool_specs[0].machine_spec.machine_type is "e2-standard-5": there is no such machine; the nearest name' ..
    ' is e2-standard-4',
  } },
  { "worker_pool_specs: []", V, says = { "config.yaml:1: worker_pool_specs has no pool: the first one is the chief" } },
  { "workerPoolSpecs:\n- machineSpec: {machineType: n1-standard-4}\n", V, says = {
    "config.yaml:2: workerPoolSpecs[0] has neither containerSpec nor pythonPackageSpec: what does it run?",
  } },
  {
    "workerPoolSpecs:\n- machineSpec: {machineType: n1-standard-4}\n  containerSpec: {imageUri: i}\n" ..
      "  pythonPackageSpec: {executorImageUri: i, pythonModule: m}\n", V, says = {
    "config.yaml:4: workerPoolSpecs[0].containerSpec and workerPoolSpecs[0].pythonPackageSpec exclude each other: keep one",
  } },
  { "workerPoolSpecs:\n- machineSpec: {machineTyp: n1-standard-4}\n  containerSpec: {imageUri: i}\n", V, says = {
    "config.yaml:2: workerPoolSpecs[0].machineSpec.machineTyp is not known: machineType is meant?",
  } },
  { "workerPoolSpecs:\n- machineSpec: {}\n  containerSpec: {imageUri: i}\n", V, says = {
    "config.yaml:2: workerPoolSpecs[0].machineSpec.machineType is missing: e.g. n1-standard-4",
  } },
  { "workerPoolSpecs:\n- containerSpec: {imageUri: i}\n", V, says = {
    "config.yaml:2: workerPoolSpecs[0].machineSpec is missing: e.g. n1-standard-4",
  } },
  { "workerPoolSpecs:\n- machineSpec: {machineType: n1-standard-4}\n  containerSpec: {args: [a]}\n", V, says = {
    "config.yaml:3: workerPoolSpecs[0].containerSpec.imageUri is missing",
  } },
  {
    "workerPoolSpecs:\n- machineSpec: {machineType: n1-standard-4}\n  machine_spec: {machineType: n1-standard-4}\n" ..
      "  containerSpec: {imageUri: i}\n", V, says = {
    "config.yaml:3: workerPoolSpecs[0].machine_spec says the same as workerPoolSpecs[0].machineSpec: keep one",
  } },
  {
    "displayName: x\njobSpec:\n  workerPoolSpecs:\n  - machineSpec: {machineType: n1-standard-4}\n" ..
      "    replicaCount: 1\n    diskSpec: {bootDiskType: ssd, bootDiskSizeGb: 10}\n" ..
      "    containerSpec: {imageUri: i, env: [{name: 1x, value: y}, {value: z}]}\n" ..
      "  baseOutputDirectory: {outputUriPrefix: bucket}\n  scheduling: {timeout: 1h}\n", V, says = {
    'config.yaml:9: scheduling.timeout is "1h", it should be seconds with an s, such as 7200s',
    'config.yaml:7: workerPoolSpecs[0].containerSpec.env[0].name is "1x": names of variables are letters, digits and _',
    "config.yaml:7: workerPoolSpecs[0].containerSpec.env[1].name is missing: names of variables are letters, digits and _",
    'config.yaml:6: workerPoolSpecs[0].diskSpec.bootDiskType is "ssd", disks are hyperdisk-balanced, pd-ssd, pd-standard',
    "config.yaml:6: workerPoolSpecs[0].diskSpec.bootDiskSizeGb is 10, a disk has at least 100 GB",
    'config.yaml:8: baseOutputDirectory.outputUriPrefix is "bucket", it should be a folder of a bucket: gs://BUCKET/FOLDER',
  } },
  { P .. pool("n1-standard-8", 1), "", says = { "the region is missing: --region us-central1" } },
  { P .. pool("n1-standard-8", 1), "--region us-central3", says = {
    '--region: region is "us-central3": there is no such region; the nearest name is us-central1',
  } },
  { P .. pool("n1-standard-8", 1), V .. " --scale-tier custom", says = {
    "--scale-tier has no place in a job of Vertex AI, which is made of worker pools",
  } },
  {
    P .. pool("n1-standard-8", 1), V .. " --worker-count 2 --worker-machine-type n1-standard-4 --worker-image-uri i" },
  {
    P .. pool("n1-standard-8", 1, {"NVIDIA_TESLA_T4", 1}), V .. " --master-accelerator count=3,type=nvidia-tesla-t4", says = {
    "--master-accelerator: worker_pool_specs[0].machine_spec.accelerator_count is 3: n1-standard-8 takes 1, 2 or 4" ..
    " NVIDIA_TESLA_T4; the nearest are 2 and 4",
  } },
}

return cases
