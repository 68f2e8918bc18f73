/** A vendor of one's own and the official clients pointed at it. */
import type { TestContext } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import type { BillEntry } from '../../../plugins/sandbox/bill.ts';
import { type RunningVendor, startVendor, type VendorOptions } from '../../../plugins/sandbox/vendor.ts';

export const apiKey = 'sk-test';

/** A running vendor that is closed when the test ends. */
export async function vendorFor(test: TestContext, options: VendorOptions = {}): Promise<RunningVendor> {
  const vendor = await startVendor(options);
  test.after(() => vendor.close());
  return vendor;
}

export function openai(vendor: { origin: string }, key = apiKey): OpenAI {
  return new OpenAI({ baseURL: `${vendor.origin}/v1`, apiKey: key, maxRetries: 0 });
}

export function anthropic(vendor: { origin: string }, key = apiKey): Anthropic {
  return new Anthropic({ baseURL: vendor.origin, apiKey: key, maxRetries: 0 });
}

export function google(vendor: { origin: string }, key = apiKey): GoogleGenAI {
  return new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: vendor.origin } });
}

/** The newest entry of the bill, once nothing runs any more. */
export async function lastEntry(vendor: RunningVendor): Promise<BillEntry> {
  for (let tries = 0; vendor.bill().open > 0 && tries < 6_000; tries++) await pause(5);
  return vendor.bill().recent.at(-1)!;
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
}

/** A prompt that is long enough to be cached. */
export const longText = 'Every word of this instruction is here to make it long. '.repeat(100);

export const weatherSchema = {
  type: 'object',
  properties: {
    city: { type: 'string' },
    unit: { type: 'string', enum: ['celsius', 'fahrenheit'] },
    days: { type: 'integer', minimum: 1 },
  },
  required: ['city', 'unit'],
};
