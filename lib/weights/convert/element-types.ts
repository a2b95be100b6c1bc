/** An element type of weight files: so many elements lie in so many bytes. */
export interface ElementType {
  readonly elements: number;
  readonly bytes: number;
}

type FloatType = 'F16' | 'BF16' | 'E4M3' | 'E5M2' | 'U8';
type GgmlType = `Q${'4_0' | '4_1' | '5_0' | '5_1' | '8_0' | '2_K' | '3_K' | '4_K' | '5_K' | '6_K'}`;
/** A kernel that decodes elements to f32. */
export type Decoder = `decode${FloatType | GgmlType}`;

/** What is known of an element type. */
export interface KnownType extends ElementType {
  /** Its number in GGUF files. */
  readonly ggml?: number;
  /** Null for f32, which is as it is; absent where no weight is read from the type. */
  readonly decoder?: Decoder | null;
  /** Bits of those `Blocks` that hold the same integers and scales. */
  readonly sameBits?: 8 | 4;
}

/**
 * By the names of safetensors and GGML. Geometry of GGML's types: ggml-common.h. More than can be read: a file may list
 * any of them, and an error arises only when such a tensor is read.
 */
export const elementTypes: ReadonlyMap<string, KnownType> = new Map(
  Object.entries({
    F32: { elements: 1, bytes: 4, ggml: 0, decoder: null },
    F16: { elements: 1, bytes: 2, ggml: 1, decoder: 'decodeF16' },
    BF16: { elements: 1, bytes: 2, ggml: 30, decoder: 'decodeBF16' },
    F8_E4M3: { elements: 1, bytes: 1, decoder: 'decodeE4M3' },
    F8_E5M2: { elements: 1, bytes: 1, decoder: 'decodeE5M2' },
    U8: { elements: 1, bytes: 1, decoder: 'decodeU8' },
    BOOL: { elements: 1, bytes: 1 },
    I8: { elements: 1, bytes: 1, ggml: 24 },
    I16: { elements: 1, bytes: 2, ggml: 25 },
    U16: { elements: 1, bytes: 2 },
    I32: { elements: 1, bytes: 4, ggml: 26 },
    U32: { elements: 1, bytes: 4 },
    I64: { elements: 1, bytes: 8, ggml: 27 },
    U64: { elements: 1, bytes: 8 },
    F64: { elements: 1, bytes: 8, ggml: 28 },
    Q4_0: { elements: 32, bytes: 18, ggml: 2, decoder: 'decodeQ4_0', sameBits: 4 },
    Q4_1: { elements: 32, bytes: 20, ggml: 3, decoder: 'decodeQ4_1' },
    Q5_0: { elements: 32, bytes: 22, ggml: 6, decoder: 'decodeQ5_0' },
    Q5_1: { elements: 32, bytes: 24, ggml: 7, decoder: 'decodeQ5_1' },
    Q8_0: { elements: 32, bytes: 34, ggml: 8, decoder: 'decodeQ8_0', sameBits: 8 },
    Q8_1: { elements: 32, bytes: 36, ggml: 9 },
    Q2_K: { elements: 256, bytes: 84, ggml: 10, decoder: 'decodeQ2_K' },
    Q3_K: { elements: 256, bytes: 110, ggml: 11, decoder: 'decodeQ3_K' },
    Q4_K: { elements: 256, bytes: 144, ggml: 12, decoder: 'decodeQ4_K' },
    Q5_K: { elements: 256, bytes: 176, ggml: 13, decoder: 'decodeQ5_K' },
    Q6_K: { elements: 256, bytes: 210, ggml: 14, decoder: 'decodeQ6_K' },
    Q8_K: { elements: 256, bytes: 292, ggml: 15 },
    IQ2_XXS: { elements: 256, bytes: 66, ggml: 16 },
    IQ2_XS: { elements: 256, bytes: 74, ggml: 17 },
    IQ3_XXS: { elements: 256, bytes: 98, ggml: 18 },
    IQ1_S: { elements: 256, bytes: 50, ggml: 19 },
    IQ4_NL: { elements: 32, bytes: 18, ggml: 20 },
    IQ3_S: { elements: 256, bytes: 110, ggml: 21 },
    IQ2_S: { elements: 256, bytes: 82, ggml: 22 },
    IQ4_XS: { elements: 256, bytes: 136, ggml: 23 },
    IQ1_M: { elements: 256, bytes: 56, ggml: 29 },
    TQ1_0: { elements: 256, bytes: 54, ggml: 34 },
    TQ2_0: { elements: 256, bytes: 66, ggml: 35 },
    MXFP4: { elements: 32, bytes: 17, ggml: 39 },
  } satisfies Record<string, KnownType>),
);

/** The type that GGUF files give a number, with its name; undefined for one that is not known. */
export function ggmlType(number: number): (ElementType & { readonly name: string }) | undefined {
  const [name, type] = [...elementTypes].find(([, { ggml }]) => ggml === number) ?? [];
  return name !== undefined && type ? { name, ...type } : undefined;
}
