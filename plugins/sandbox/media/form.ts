/** Converts a form with files into the equivalent JSON: `image` and `image[]` are references, all else is text. Pure. */
import { badRequest } from '../fault.ts';
import type { JsonObject } from '../json.ts';

const numbers = new Set(['n', 'output_compression', 'partial_images']);

/** Throws a 400 fault for an invalid form, or for text instead of a file. */
export async function formOf(bytes: Buffer, contentType: string): Promise<JsonObject> {
  const headers = { 'content-type': contentType };
  const form = await new Response(new Uint8Array(bytes), { headers }).formData().catch(() => {
    throw badRequest('We could not parse the form of your request.');
  });
  const images: object[] = [];
  const body: Record<string, unknown> = {};
  for (const [name, value] of form) {
    if (name === 'image' || name === 'image[]') images.push({ image_url: await dataUrl(value, name) });
    else if (name === 'mask') body[name] = { image_url: await dataUrl(value, name) };
    else if (typeof value !== 'string') throw badRequest(`The field '${name}' takes no file.`, name);
    else body[name] = numbers.has(name) ? Number(value) : value === 'true' || value;
  }
  return { ...body, images };
}

/** The official API identifies files by content; the sandbox requires a content type. */
async function dataUrl(value: File | string, name: string): Promise<string> {
  if (typeof value === 'string' || value.size === 0)
    throw badRequest('Invalid image file.', name, 'invalid_image_file');
  const bytes = Buffer.from(await value.arrayBuffer());
  return `data:${value.type};base64,${bytes.toString('base64')}`;
}
