import {
  type ConvolutionLayer,
  FrameAttention,
  FrameConvolution,
  ResidualBlock,
  Upsample,
  type UpsampleLayer,
  type Workspace,
} from './layers';
import type { VaeLoader } from './weights';

/** Loads layers: by the runtime ({@link NetworkLoader}) or as kernels of our own. */
export interface LayerLoader {
  readonly workspace: Workspace;
  /** All convolutions that were loaded. */
  readonly convolutions: readonly ConvolutionLayer[];
  /** A 3×3 convolution, behind norm and SiLU where `norm` names their scale. */
  convolution(
    name: string,
    inputs: number,
    filters: number,
    norm?: string,
  ): Promise<ConvolutionLayer>;
  /** A time convolution C→2C: for the earlier and the later frame, which is computed second. */
  timeConvolutions(
    name: string,
    channels: number,
  ): Promise<readonly [ConvolutionLayer, ConvolutionLayer]>;
  /** The first `filters` filters of a 1×1×1 convolution. */
  pointwise(name: string, inputs: number, filters: number): Promise<ConvolutionLayer>;
  residualBlock(name: string, inputs: number, filters: number): Promise<ResidualBlock>;
  attention(name: string, channels: number): Promise<FrameAttention>;
  upsample(name: string, channels: number, shortcut: Upsample['shortcut']): Promise<UpsampleLayer>;
}

/** Loads the layers that encoder and decoder share; `taps` is 1 for a single frame. */
export class NetworkLoader implements LayerLoader {
  readonly convolutions: FrameConvolution[] = [];

  constructor(
    readonly workspace: Workspace,
    readonly loader: VaeLoader,
    readonly taps: 1 | 3,
  ) {}

  async convolution(
    name: string,
    inputs: number,
    filters: number,
    norm?: string,
  ): Promise<FrameConvolution> {
    const weights = {
      ...(await this.loader.convolution(name, this.taps)),
      ...(norm !== undefined && (await this.loader.gamma(`${norm}.gamma`))),
    };
    const { taps } = this;
    return this.#keep({ inputs, filters, kernel: 3, taps, norm: norm !== undefined }, weights);
  }

  async timeConvolutions(name: string, channels: number) {
    return [
      await this.#timeConvolution(name, channels, 0),
      await this.#timeConvolution(name, channels, 1),
    ] as const;
  }

  async #timeConvolution(name: string, channels: number, part: 0 | 1): Promise<FrameConvolution> {
    const weights = await this.loader.convolution(name, 3, part, 2);
    return this.#keep(
      { inputs: channels, filters: channels, kernel: 1, taps: 3, norm: false },
      weights,
    );
  }

  async pointwise(name: string, inputs: number, filters: number): Promise<FrameConvolution> {
    const weights = await this.loader.pointwise(name, filters);
    return this.#keep({ inputs, filters, kernel: 1, taps: 1, norm: false }, weights);
  }

  async residualBlock(name: string, inputs: number, filters: number): Promise<ResidualBlock> {
    const first = await this.convolution(`${name}.conv1`, inputs, filters, `${name}.norm1`);
    const weights = {
      ...(await this.loader.convolution(`${name}.conv2`, this.taps)),
      ...(await this.loader.gamma(`${name}.norm2.gamma`)),
      ...(inputs !== filters && (await this.loader.shortcut(`${name}.conv_shortcut`))),
    };
    const second = this.#keep(
      {
        inputs: filters,
        filters,
        kernel: 3,
        taps: this.taps,
        norm: true,
        residual: inputs === filters ? { kind: 'identity' } : { kind: 'linear', inputs },
      },
      weights,
    );
    return new ResidualBlock(this.workspace, first, second);
  }

  async attention(name: string, channels: number): Promise<FrameAttention> {
    return new FrameAttention(this.workspace, channels, await this.loader.attention(name));
  }

  async upsample(name: string, channels: number, shortcut: Upsample['shortcut']) {
    const weights = await this.loader.phases(name);
    return new Upsample(this.workspace, channels, shortcut, weights);
  }

  #keep(shape: FrameConvolution['shape'], weights: FrameConvolution['weights']): FrameConvolution {
    const convolution = new FrameConvolution(this.workspace, shape, weights);
    this.convolutions.push(convolution);
    return convolution;
  }
}

/** The middle block: residual block, attention, residual block. */
export async function loadMiddle(parts: LayerLoader, name: string, channels: number) {
  return [
    await parts.residualBlock(`${name}.resnets.0`, channels, channels),
    await parts.attention(`${name}.attentions.0`, channels),
    await parts.residualBlock(`${name}.resnets.1`, channels, channels),
  ] as const;
}
