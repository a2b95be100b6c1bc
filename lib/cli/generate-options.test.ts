import { describe, expect, it } from 'vitest';
import { KinoraError, parseParameters, samplePrompt } from '../contract';
import {
  type GenerateOptions,
  generateHelp,
  parseGenerateOptions,
  withModelDefaults,
} from './generate-options';

function options(...args: string[]): GenerateOptions {
  const parsed = parseGenerateOptions(args);
  if (parsed === 'help') throw new Error('help was not asked for');
  return parsed;
}

function failure(...args: string[]): KinoraError {
  try {
    parseGenerateOptions(args);
  } catch (error) {
    if (error instanceof KinoraError) return error;
    throw error;
  }
  throw new Error(`${args.join(' ')} was accepted`);
}

describe('the options of generate', () => {
  it('have the defaults of the request and the bundled sample', () => {
    expect(options()).toEqual({
      image: undefined,
      lastImage: undefined,
      parameters: parseParameters({ prompt: samplePrompt }),
      explicit: [],
      model: 'mini',
      profile: 'standard',
      options: { safetyChecker: true },
      device: {},
      precision: undefined,
      hub: undefined,
      yes: false,
      acceptTerms: false,
      out: undefined,
    });
  });

  it('are read, each into its field', () => {
    const line =
      '--image a.png --crop 0,.75,1.5 --prompt p --negative-prompt n --size 720*1280 --duration 10 --loop --upscale 2 --upscaler realesr-general-x4v3 --smooth --steps 40 ' +
      '--guidance 1.5 --flow-shift 2.5 --seed 9999999999 --lora a.safetensors:0.8 ' +
      '--lora b.safetensors:4 --model other --backend wasm --kernels fast --memory 7.5 ' +
      '--precision int4 --hub http://127.0.0.1:1 --fast --yes --accept-terms --optimize-prompt --no-colour-correction --no-safety-check --encoder ffmpeg --out v.mp4';
    expect(options(...line.split(' '))).toEqual({
      image: 'a.png',
      lastImage: undefined,
      parameters: {
        prompt: 'p',
        negative_prompt: 'n',
        loras: [
          { path: 'a.safetensors', scale: 0.8 },
          { path: 'b.safetensors', scale: 4 },
        ],
        size: '720*1280',
        num_inference_steps: 40,
        duration: 10,
        loop: true,
        upscale: 2,
        upscaler: 'realesr-general-x4v3',
        smooth: true,
        guidance_scale: 1.5,
        flow_shift: 2.5,
        seed: 9_999_999_999,
      },
      explicit: ['negative_prompt', 'num_inference_steps', 'guidance_scale', 'flow_shift'],
      model: 'other',
      profile: 'ultra-fast',
      options: {
        framing: { zoom: 1.5, x: 0, y: 0.75, background: 'blur' },
        promptOptimizer: true,
        keepsColours: false,
        safetyChecker: false,
        encoder: 'ffmpeg',
      },
      device: { backend: 'wasm', kernels: 'fast', memoryBudget: 7.5 * 2 ** 30 },
      precision: 'int4',
      hub: 'http://127.0.0.1:1',
      yes: true,
      acceptTerms: true,
      out: 'v.mp4',
    });
  });

  it('fit the whole image, with blurred or plain bars', () => {
    const whole = { zoom: 0, x: 0.5, y: 0.5 };
    expect(options('--fit', 'blur').options.framing).toEqual({ ...whole, background: 'blur' });
    expect(options('--fit', '#20A040').options.framing).toEqual({
      ...whole,
      background: '#20A040',
    });
  });

  it('name an end image, framed by options of its own', () => {
    const line = ['--fit', 'blur', '--last-image', 'b.png', '--last-crop', '1,0,2'];
    const second = ['--last-image-at', '2.5', '--loop'];
    expect(options(...line, ...second)).toMatchObject({
      parameters: { last_image_at: 2.5, loop: true },
      lastImage: { from: 'b.png', framing: { zoom: 2, x: 1, y: 0 } },
      options: { framing: { zoom: 0 } },
    });
  });

  it('leave what was not typed to the model', () => {
    const defaults = { num_inference_steps: 8, negative_prompt: 'three legs' };
    const run = (...args: string[]) => withModelDefaults(options(...args), defaults);
    expect(run()).toMatchObject({ ...defaults, guidance_scale: 5 });
    expect(run('--negative-prompt', '', '--steps', '30')).toMatchObject({
      negative_prompt: '',
      num_inference_steps: 30,
    });
    expect(withModelDefaults(options(), {}).negative_prompt).toBe('');
  });

  it('take a negative seed as people write it', () => {
    expect(options('--seed', '-1').parameters.seed).toBe(-1);
    expect(options('--seed=-1').parameters.seed).toBe(-1);
  });

  it('keep the drive letter of a Windows path', () => {
    expect(options('--lora', 'C:\\loras\\a.safetensors:1').parameters.loras).toEqual([
      { path: 'C:\\loras\\a.safetensors', scale: 1 },
    ]);
  });

  it('know --help, and the help names every option', () => {
    expect(parseGenerateOptions(['--help'])).toBe('help');
    expect(parseGenerateOptions(['-h', '--steps', '99'])).toBe('help');
    for (const name of [
      'image',
      'negative-prompt',
      'flow-shift',
      'lora',
      'backend',
      'kernels',
      'memory',
      'hub',
      'out',
    ]) {
      expect(generateHelp).toContain(`--${name} `);
    }
  });

  // The ranges themselves are those of the request: lib/contract.
  it.each([
    ['--steps 41', 'PARAMETER_INVALID', '--steps must be a whole number from 1 to 40.'],
    ['--steps many', 'PARAMETER_INVALID', '--steps must be a whole number from 1 to 40.'],
    ['--steps 0x10', 'PARAMETER_INVALID', '--steps must be a whole number from 1 to 40.'],
    ['--steps=', 'PARAMETER_INVALID', '--steps must be a whole number from 1 to 40.'],
    ['--duration 4', 'PARAMETER_INVALID', '--duration must be a whole number from 5 to 10.'],
    ['--guidance 0.9', 'PARAMETER_INVALID', '--guidance must be a number from 1 to 10.'],
    ['--flow-shift 10.1', 'PARAMETER_INVALID', '--flow-shift must be a number from 1 to 10.'],
    ['--seed -2', 'PARAMETER_INVALID', '--seed must be a whole number from -1 to 9999999999.'],
    ['--size 640*480', 'PARAMETER_INVALID', '--size must be one of 1280*720, 720*1280.'],
    ['--crop 0.5', 'PARAMETER_INVALID', '--crop must be X,Y or X,Y,ZOOM'],
    ['--crop 0.5,1.1', 'PARAMETER_INVALID', '--crop must be X,Y or X,Y,ZOOM'],
    ['--crop 0,0,0.5', 'PARAMETER_INVALID', 'a zoom from 1 to 4'],
    ['--crop 0,0,1,1', 'PARAMETER_INVALID', '--crop must be X,Y or X,Y,ZOOM'],
    ['--fit red', 'PARAMETER_INVALID', '--fit must be blur or a colour'],
    ['--fit blur --crop 0,0', 'REQUEST_INVALID', '--crop and --fit exclude each other.'],
    ['--last-fit blur', 'REQUEST_INVALID', '--last-crop and --last-fit need --last-image.'],
    ['--last-image-at 2', 'REQUEST_INVALID', '--last-image-at, --last-crop and --last-fit need'],
    ['--last-image a.png --last-image-at 6', 'LAST_IMAGE_BEYOND_END', 'has 5 seconds.'],
    ['--last-image-at 0', 'PARAMETER_INVALID', '--last-image-at must be at least 0.1.'],
    ['--last-image-at end', 'PARAMETER_INVALID', '--last-image-at must be a number.'],
    ['--loop --last-image a.png', 'LOOP_WITH_LAST_IMAGE', 'it takes no end image'],
    ['--backend cuda', 'PARAMETER_INVALID', '--backend must be one of webgpu, wasm.'],
    [
      '--kernels quick',
      'PARAMETER_INVALID',
      '--kernels must be one of exact, fast, matrix, runtime.',
    ],
    ['--memory 0', 'PARAMETER_INVALID', '--memory must be a number of GiB above 0.'],
    ['--memory all', 'PARAMETER_INVALID', '--memory must be a number of GiB above 0.'],
    ['--precision 8', 'PARAMETER_INVALID', '--precision must be one of f32, int8, int4.'],
    ['--lora a:1 --lora b:1 --lora c:1 --lora d:1', 'PARAMETER_INVALID', '--lora takes at most 3'],
    ['--lora a.safetensors', 'PARAMETER_INVALID', 'must be PATH:SCALE'],
    ['--lora a.safetensors:5', 'PARAMETER_INVALID', 'must be PATH:SCALE'],
    ['--lora :1', 'PARAMETER_INVALID', 'must be PATH:SCALE'],
    ['--prompt=', 'PROMPT_EMPTY', 'The prompt is empty.'],
    ['--image a.png', 'PROMPT_EMPTY', 'The prompt is empty.'],
    ['--colour red', 'REQUEST_INVALID', "Unknown option '--colour'."],
    ['--steps', 'REQUEST_INVALID', "Option '--steps <value>' argument missing."],
    ['stray', 'REQUEST_INVALID', "Unexpected argument 'stray'."],
  ])('refuse %s', (line, code, sentence) => {
    const error = failure(...line.split(' '));
    expect(error.code).toBe(code);
    expect(error.message).toContain(sentence);
    expect(error.remedy).not.toBe('');
  });
});
