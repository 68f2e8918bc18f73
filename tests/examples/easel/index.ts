/** The media API of a made-up vendor: a video is a job that is started, polled, and cancelled while it is queued. */
import { definePlugin, z } from 'model-gateway';
import { type MediaAdapter, mediaAdapters, type Step, type VendorAnswer } from 'model-gateway/domain';
import { type JsonObject, media, objectOf, textOf } from 'model-gateway/kit';

const longestSeconds = 12;
const usualSeconds = 6;

const easel: MediaAdapter = {
  name: 'easel',
  path: '/jobs',
  kind: 'video',
  auth: { header: 'x-easel-key', value: '{key}' },
  needsBytes: false,
  mostPerCall: 1,
  create(order, target) {
    media.refuseRoles(order, new Set(['first_frame', 'image']));
    const { seconds = usualSeconds } = order;
    if (seconds > longestSeconds)
      throw media.unsupported(`The model makes at most ${longestSeconds} seconds.`, media.fieldOf(order, 'seconds'));
    const frames = order.references.map(media.addressOf);
    return {
      method: 'POST',
      path: '/jobs',
      body: { scene: order.prompt, seconds, style: target.model, ...(frames.length === 0 ? {} : { frames }) },
      dropped: media.droppedMembers(order, 'watermark'),
    };
  },
  readCreated: jobIn,
  tasks: {
    poll: (id) => ({ method: 'GET', path: `/jobs/${encodeURIComponent(id)}` }),
    readPolled: jobIn,
    cancel: (id) => ({ method: 'DELETE', path: `/jobs/${encodeURIComponent(id)}` }),
  },
  bounds: ({ seconds = usualSeconds }) => ({ inputTokens: 0, outputTokens: 0, images: 0, seconds, media: [] }),
};

/** Started and polled jobs have the same form. */
function jobIn(answer: VendorAnswer): Step {
  const read = media.readObject(answer);
  if ('failed' in read) return read.failed;
  const { job, state, film } = read.json;
  const vendorId = textOf(job);
  if (vendorId === undefined) throw media.unreadable('the job has no id');
  if (state === 'failed') return media.failedTask(objectOf(read.json['error']));
  if (state === 'ready') return finished(objectOf(film) ?? {});
  return { state: state === 'waiting' ? 'queued' : 'running', vendorId };
}

function finished({ url, seconds }: JsonObject): Step {
  if (textOf(url) === undefined || typeof seconds !== 'number') throw media.unreadable('the job has no film');
  const made = { usage: { second: seconds }, estimated: false, media: [] };
  return { state: 'done', files: [{ url: textOf(url)!, mediaType: 'video/mp4' }], made };
}

export default definePlugin({
  name: 'easel',
  config: z.strictObject({}),
  extends: [mediaAdapters],
  setup(host) {
    host.extend(mediaAdapters, easel);
    return {};
  },
});
