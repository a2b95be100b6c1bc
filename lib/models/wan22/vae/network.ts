import { FrameAttention, FrameConvolution, ResidualBlock, type Workspace } from './layers';
import type { VaeLoader } from './weights';

/** Loads the layers that encoder and decoder share; `taps` is 1 for a single frame. */
export class NetworkLoader {
  readonly convolutions: FrameConvolution[] = [];

  constructor(
    readonly workspace: Workspace,
    readonly loader: VaeLoader,
    readonly taps: 1 | 3,
  ) {}

  /** A 3×3 convolution, behind norm and SiLU where `norm` names their scale. */
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

  /** Part 0 or 1 of a time convolution C→2C: the earlier or the later frame. */
  async timeConvolution(name: string, channels: number, part: 0 | 1): Promise<FrameConvolution> {
    const weights = await this.loader.convolution(name, 3, part, 2);
    return this.#keep(
      { inputs: channels, filters: channels, kernel: 1, taps: 3, norm: false },
      weights,
    );
  }

  /** The first `filters` filters of a 1×1×1 convolution. */
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

  /** Residual block, attention, residual block. */
  async middle(name: string, channels: number) {
    return [
      await this.residualBlock(`${name}.resnets.0`, channels, channels),
      new FrameAttention(
        this.workspace,
        channels,
        await this.loader.attention(`${name}.attentions.0`),
      ),
      await this.residualBlock(`${name}.resnets.1`, channels, channels),
    ] as const;
  }

  #keep(shape: FrameConvolution['shape'], weights: FrameConvolution['weights']): FrameConvolution {
    const convolution = new FrameConvolution(this.workspace, shape, weights);
    this.convolutions.push(convolution);
    return convolution;
  }
}
