import type { ErrorCode } from '../../../lib/contract';

/** The errors of `lib/contract/errors.ts`: what is wrong, and what to do. */
export const errors: Readonly<Record<ErrorCode, readonly [message: string, remedy: string]>> = {
  IMAGE_MISSING: ['没有图片。', '选择、拖入或粘贴一张 JPEG、PNG、WebP、AVIF、GIF 或 BMP 图片。'],
  IMAGE_EMPTY: ['图片文件是空的（零字节）。', '换一个文件，或重新保存它。'],
  IMAGE_TOO_LARGE: ['图片文件大于 20 MB。', '把它存为 JPEG，或缩小尺寸。'],
  IMAGE_TOO_MANY_PIXELS: ['图片超过 4000 万像素。', '请先缩小它；长边 1280 像素就够了。'],
  IMAGE_UNREADABLE: [
    '浏览器无法把这个文件读作图片。',
    '使用 JPEG、PNG、WebP、AVIF、GIF 或 BMP 图片。',
  ],
  IMAGE_HEIC: [
    '图片是 HEIC 格式，Kinora 无法读取。',
    '把它存为或导出为 JPEG。在 iPhone 上，“设置 → 相机 → 格式 → 兼容性最佳”会拍摄 JPEG。',
  ],
  IMAGE_TRUNCATED: ['图片文件不完整。', '重新复制或下载它。'],
  SHARE_UNREADABLE: ['无法读取分享的请求。', '重新打开链接；它可能已经失效。'],
  SHARED_FILES_LOST: [
    '无法保留分享给 Kinora 的内容：此浏览器的存储空间已满或被禁止。',
    '在这里选择文件；或在设置中释放空间后重新分享。',
  ],
  IMAGE_UNREACHABLE: ['无法获取图片。', '检查地址，或使用本地文件。'],
  PROMPT_EMPTY: ['提示词是空的。', '描述视频里应该发生什么。'],
  PROMPT_REFUSED: ['提示词把儿童与性联系在一起；Kinora 绝不制作这样的视频。', '修改提示词。'],
  PARAMETER_INVALID: ['有参数超出了范围。', '使用范围内的值。'],
  REQUEST_INVALID: ['无法读取请求。', '对照文档中的参数检查它。'],
  LOOP_WITH_LAST_IMAGE: [
    '循环视频结束于起始图片，因此不能有结束图片。',
    '两者只保留一个，或让视频在更早的一秒显示结束图片。',
  ],
  LAST_IMAGE_BEYOND_END: ['结束图片所在的秒数超出了视频。', '请选择更早的一秒，或更长的时长。'],
  MODEL_UNKNOWN: ['没有这个编号的模型。', '使用列出的模型编号。'],
  MODEL_MANIFEST_INVALID: ['模型清单无效。', '改正所指的字段。'],
  MODEL_FILE_MISSING: ['模型缺少一个文件。', '恢复该文件，或重新下载模型。'],
  MODEL_FILE_INVALID: ['模型的一个文件已损坏，或内容与名称不符。', '重新下载该文件。'],
  MODEL_FILE_TRUNCATED: ['模型的一个文件不完整。', '重新下载该文件。'],
  MODEL_CONFIG_INVALID: ['Kinora 无法运行这种配置的模型。', '使用与列表中某个模型结构相同的模型。'],
  MODEL_NOT_INSTALLED: [
    '这个浏览器里还没有该模型。',
    '在“模型”页下载它，或在那里选择存有其文件的文件夹。',
  ],
  MODEL_WRONG_KIND: ['该文件属于另一个模型。', '使用列表中的模型或相同结构模型的权重。'],
  MODEL_BUSY: ['模型正在使用中。', '等它空闲，或到正在使用它的标签页继续。'],
  LANGUAGE_MODEL_FAILED: [
    '改进提示词的语言模型无法运行。',
    '直接使用现在的提示词；或者关闭其他标签页、更新浏览器后再试。',
  ],
  TENSOR_MISSING: ['模型缺少一个张量。', '使用该模型完整的权重。'],
  TENSOR_SHAPE: ['模型的一个张量形状不对。', '使用同一个模型的权重和配置。'],
  TENSOR_EXTRA: ['文件里有这个模型不认识的张量。', '使用模型本身的权重，不要附加其他用途的内容。'],
  TENSOR_DTYPE: [
    '一个张量的元素类型无法读取。',
    '使用 f32、f16 或 bf16 权重、每个张量或每行一个缩放系数的 fp8，或 GGUF：Q4_0 至 Q8_0、Q2_K 至 Q6_K。',
  ],
  ADDRESS_INVALID: [
    'Kinora 无法从这个地址获取内容。',
    '使用 owner/name、模型库中的 owner/name/path，或文件的 https 链接。',
  ],
  HUB_UNREACHABLE: [
    '无法连接模型库。',
    '检查网络和模型库地址，或使用本地文件；下载会从中断处继续。',
  ],
  LINK_UNREACHABLE: [
    '无法访问该链接。',
    '请检查链接和网络连接。有些服务器不响应网页：请自行下载该文件，再在这里选择它。',
  ],
  HUB_NOT_FOUND: ['模型库里没有这个仓库或文件。', '检查地址、路径和版本。'],
  HUB_DENIED: ['模型库拒绝访问这个仓库。', '选择公开的仓库，或自行下载文件后选择文件夹。'],
  HUB_BUSY: ['模型库要求稍后再获取。', '几分钟后继续下载；什么都不会丢失。'],
  HUB_ANSWER_INVALID: ['模型库的回答无法使用。', '重试，或使用另一个镜像。'],
  DOWNLOAD_CORRUPT: [
    '下载的内容与模型库公布的不符。',
    '重新开始这一部分；如果再次发生，请使用另一个镜像。',
  ],
  TERMS_NOT_ACCEPTED: [
    '这台设备上还没有接受使用条款。',
    '在“使用条款”页阅读并接受，或给命令加上 --accept-terms。',
  ],
  LORA_MISSING: ['找不到 LoRA。', '检查 LoRA 文件的路径。'],
  LORA_INVALID: ['该文件不是可以读取的 LoRA。', '使用适用于你的某个模型的 .safetensors LoRA。'],
  LORA_WRONG_BASE: ['这个 LoRA 是为另一个基础模型制作的。', '使用在当前模型上训练的 LoRA。'],
  WEBGPU_MISSING: [
    '这个浏览器没有 WebGPU。',
    '使用最新版的 Chrome 或 Edge，或选择 CPU。Firefox 只在 Windows 和搭载 Apple 芯片的 Mac 上有 WebGPU；Kinora 尚未在 Safari 中测试过。',
  ],
  ADAPTER_MISSING: [
    '浏览器有 WebGPU，但没有找到可用的 GPU。',
    '更新显卡驱动，开启硬件加速，或选择 CPU。',
  ],
  ADAPTER_SOFTWARE: [
    '这个浏览器用 CPU 模拟 GPU：可以运行，但很慢。',
    '开启硬件加速以使用真正的 GPU；没有 GPU 时，选择 CPU 更快。',
  ],
  GPU_UNRELIABLE: ['GPU 在自检中算出了错误的数。', '更新浏览器和显卡驱动，或选择 CPU。'],
  KERNELS_UNAVAILABLE: [
    'Kinora 的内核无法在这块 GPU 上计算这个模型。',
    '在“设置 → GPU”中选择“精确”；如果已经选择了它，请选择“仅用运行时”。在终端中使用 --kernels exact，否则 --kernels runtime。',
  ],
  DEVICE_LOST: ['GPU 在工作时丢失了。', '关闭其他使用 GPU 的程序后再运行；设置已保留。'],
  OUT_OF_MEMORY: ['GPU 没有足够的空闲内存。', '关闭其他使用 GPU 的程序，或使用更小的模型。'],
  LATENTS_NOT_FINITE: [
    '视频的数值变得无效（NaN 或无穷大）。',
    '换一个种子、降低引导强度，或不用 LoRA 运行。',
  ],
  CHECK_FAILED: ['安全检查没有给出结果。', '再运行一次；如果再次发生，请重新下载安全检查模型。'],
  ENCODER_FAILED: ['浏览器的视频编码器失败了。', '再运行一次；如果再次发生，请更新浏览器。'],
  STORAGE_FULL: ['没有足够的空间存放视频。', '删除旧视频或释放磁盘空间，然后再运行。'],
  STORAGE_BLOCKED: [
    '这个浏览器不允许 Kinora 存储任何内容。',
    '通过 https 或 localhost 打开它，允许网站数据，并且不要用隐私窗口。',
  ],
  STORAGE_MISSING: [
    '这个浏览器没有 Kinora 用来保存视频和模型的私有文件存储（OPFS）。',
    '请使用最新版的 Chrome、Edge、Firefox 或 Safari。',
  ],
  CANCELLED: ['生成已取消。', '可以随时再运行。'],
  INTERRUPTED: ['生成过程中页面被关闭或重新加载。', '再运行一次；设置和图片已保留。'],
  PAUSED: ['生成已暂停，显卡空闲。', '可以随时继续：它会从停下的地方接着做。'],
  CHECKPOINT_INVALID: ['这次生成保存的状态无法使用。', '再运行一次；设置和图片已保留。'],
  CHECKPOINT_MISMATCH: [
    '保存的状态属于另一个模型、适配器或请求。',
    '换回当时的模型和适配器，或重新运行；保存的内容仍然保留。',
  ],
  BUSY: ['另一个生成正在运行。', '等它结束，或取消它。'],
  SCRIPT_REFUSED: [
    '浏览器没有运行 Kinora 的一个脚本。',
    '重新加载页面。如果没有用，请在浏览器和扩展里允许它的脚本，或告诉服务器的管理者：可能被某个响应头或代理拦住了。',
  ],
  SERVER_UNREACHABLE: ['此页面的服务器没有响应。', '检查网络以及服务器是否在运行，然后重试。'],
  VIDEO_UNREADABLE: [
    '这个文件不是 Kinora 的视频，或者不含设置。',
    '使用工作室或 npm run generate 保存的 MP4。',
  ],
  AUDIO_UNREADABLE: [
    '这个文件没有浏览器能读取的音频。',
    '使用完整、没有版权保护、最多 8 个声道的 MP3、M4A、WAV、FLAC、Ogg 或 Opus 文件。',
  ],
  FILE_UNREADABLE: ['有文件无法读取。', '检查它是否存在、是否允许读取。'],
  FILE_UNWRITABLE: ['无法在那里写入文件。', '为它换一个位置。'],
  NOTIFICATIONS_DENIED: [
    '浏览器不显示这个页面的通知。',
    '在浏览器的网站设置里允许通知，然后重新打开它。',
  ],
  BROWSER_MISSING: [
    '没有找到 Chrome 或 Chromium，也无法安装。',
    '安装 Google Chrome 或 Chromium，或把 KINORA_BROWSER 设为它的路径。',
  ],
  INTERNAL: ['Kinora 内部出错了。', '再运行一次；如果再次发生，请报告。'],
};
