import { z } from 'zod';
import { noUsage, submitSchema } from '../../../lib/contract/v3';
import { familiesOf, modelsFor } from '../../config';
import { takesFor } from '../../jobs';
import type { Handlers } from './index';

/** JSON Schema of a submission, before defaults. */
const requestSchema = (() => {
  const { $schema: _, ...schema } = z.toJSONSchema(submitSchema, { io: 'input' });
  const properties = Object.keys(schema.properties ?? {});
  // Tools draw a form in this order: the usual fields come first.
  const first = ['image', 'prompt', 'negative_prompt', 'loras'];
  const order = [...first, ...properties.filter((name) => !first.includes(name))];
  return { ...schema, 'x-order-properties': order };
})();

/** Of the variants with names of our own, which are listed. */
const descriptions: Readonly<Record<string, string>> = {
  'i2v-720p-lora': 'Turns a still image and a prompt into a 720p video, with up to three LoRAs.',
  'i2v-720p-lora-ultra-fast':
    'As i2v-720p-lora, by the ultra-fast profile of the worker’s model: a few steps with an adapter that was distilled for them and without guidance, decoded by a small decoder. About a twentieth of the work with Wan2.2-TI2V-5B; motion, colours and fine detail may suffer. num_inference_steps, guidance_scale, flow_shift and negative_prompt are checked, but have no effect where an adapter is installed. A worker without one takes at most 20 steps, some of them from a cache where the model has ratios for it.',
};

/** Handlers of the lists that tools of this API family read. */
export const catalogueHandlers = {
  /** `GET /api/v3/models`, in the shape that tools of this API family read. */
  models: async ({ config, files, workers }, { caller }) => {
    const { owner, shared } = caller;
    const connected = await workers.connected();
    return [...familiesOf(config).keys()].flatMap((family) => {
      const models = modelsFor(config, family);
      const jobs = { owner, shared, models, precisions: config.KINORA_SERVING_PRECISIONS };
      const serving = connected.filter((worker) => takesFor(worker, jobs));
      const servedBy = (model: string) =>
        serving.filter(({ declaration }) => model === '*' || declaration.model === model);
      const served = models.map((model) => ({ model, workers: servedBy(model).length }));
      return Object.entries(descriptions).map(([variant, description]) => ({
        model_id: `${family}/${variant}`,
        name: `${family}/${variant}`,
        type: 'image-to-video',
        base_price: 0,
        description,
        workers: serving.length,
        served_by: served,
        api_schema: {
          api_schemas: [
            {
              type: 'model_run',
              method: 'POST',
              server: files.links.publicUrl,
              api_path: `/api/v3/${family}/${variant}`,
              request_schema: requestSchema,
            },
          ],
        },
      }));
    });
  },

  /** Tools call it to test a key; the balance must look sufficient. */
  balance: async () => ({ balance: 1_000_000 }),

  /** Nothing has a price here. */
  pricing: async () => ({ unit_price: 0 }),
  price: async () => ({ price: 0, discounted_price: 0 }),
  billings: async (_, { body: { page } }) => ({ page, total: 0, items: [] }),
  usage: async () => noUsage,
  usageByBody: async () => noUsage,
} as const satisfies Handlers;
