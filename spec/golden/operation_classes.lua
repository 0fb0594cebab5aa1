-- operation_classes.lua: the classes of keras.src.ops.MODULE of Keras 3.15.1. Made by operation_classes.py.
return {
  core = [[
    AssociativeScan Cast Cond ConvertToTensor ForiLoop Map SaturateCast Scan Scatter ScatterUpdate Slice SliceUpdate StopGradient Switch
    Unstack VectorizedMap WhileLoop
  ]],
  image = [[
    AffineTransform CropImages ElasticTransform ExtractPatches GaussianBlur HSVToRGB MapCoordinates PadImages PerspectiveTransform
    RGBToGrayscale RGBToHSV Resize SSIM ScaleAndTranslate SobelEdges
  ]],
  linalg = [[
    Cholesky CholeskyInverse Det Eig Eigh Inv JVP Lstsq LuFactor MatrixRank Norm Pinv Qr SVD Solve SolveTriangular
  ]],
  math = [[
    CDist Erf Erfc Erfinv ExtractSequences FFT FFT2 IFFT2 IRFFT ISTFT InTopK Logdet Logsumexp RFFT Rsqrt STFT SegmentMax SegmentMin
    SegmentProd SegmentReduction SegmentSum TopK ViewAsComplex ViewAsReal
  ]],
  nn = [[
    AdaptiveAveragePool AdaptiveMaxPool AveragePool BatchNorm BinaryCrossentropy CTCDecode CTCLoss CategoricalCrossentropy Celu Conv
    ConvTranspose DepthToSpace DepthwiseConv DotProductAttention Elu Fold Gelu Glu HardShrink HardSigmoid HardSilu HardTanh LayerNorm
    LeakyRelu LogSigmoid LogSoftmax MaxPool Moments MultiHot Normalize OneHot PSNR Polar RMSNorm Relu Relu6 Selu SeparableConv Sigmoid
    Silu SoftShrink Softmax Softplus Softsign SpaceToDepth SparseCategoricalCrossentropy SparsePlus SparseSigmoid Sparsemax Squareplus
    TanhShrink Threshold Unfold
  ]],
  numpy = [[
    Abs Absolute Add All AllClose Amax Amin Angle Any Append Arange Arccos Arccosh Arcsin Arcsinh Arctan Arctan2 Arctanh Argmax Argmin
    Argpartition Argsort Array ArraySplit Average Bincount BitwiseAnd BitwiseInvert BitwiseLeftShift BitwiseNot BitwiseOr
    BitwiseRightShift BitwiseXor BroadcastTo Cbrt Ceil Clip Concatenate Conj Conjugate Copy Corrcoef Correlate Cos Cosh CountNonzero Cross
    Cumprod Cumsum Deg2rad Diag Diagflat Diagonal Diff Digitize Divide DivideNoNan Dot Dsplit Dstack Einsum EmptyLike Equal Exp Exp2
    ExpandDims Expm1 Fabs Flip Fliplr Flipud Floor FloorDivide Fmax Fmin Fmod Full FullLike Gcd Geomspace GetItem Greater GreaterEqual
    Heaviside Histogram Hsplit Hstack Hypot I0 Imag Inner IsIn Isclose Isfinite Isinf Isnan Isneginf Isposinf Isreal Kron Lcm Ldexp
    LeftShift Less LessEqual Linspace Log Log10 Log1p Log2 Logaddexp Logaddexp2 LogicalAnd LogicalNot LogicalOr LogicalXor Logspace Matmul
    Max Maximum Mean Median Meshgrid Min Minimum Mod Moveaxis Multiply NanToNum Nanargmax Nanargmin Nancumprod Nancumsum Nanmax Nanmean
    Nanmedian Nanmin Nanpercentile Nanprod Nanquantile Nanstd Nansum Nanvar Ndim Negative Nextafter Nonzero NotEqual OnesLike Outer Pad
    Percentile Power Prod Ptp Quantile Rad2deg Ravel Real Reciprocal Repeat Reshape RightShift Roll Rot90 Round SearchSorted Select Sign
    Signbit Sin Sinc Sinh Size Slogdet Sort Split Sqrt Square Squeeze Stack Std Subtract Sum Swapaxes Take TakeAlongAxis Tan Tanh
    Tensordot Tile Trace Transpose Trapezoid Tril Triu TrueDivide Trunc Unique UnravelIndex Vander Var Vdot View Vsplit Vstack Where
    ZerosLike
  ]],
}
