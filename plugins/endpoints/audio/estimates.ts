/** What audio measures where vendors do not say: seconds of speech and tokens of audio. Pure. */

/** Vendors publish 15 to 17 characters of speech a second; holds are made for slower speech. */
const spokenPerSecond = 15;
const heldSpokenPerSecond = 8;
/** Spoken audio at 0.015 USD a minute and 12 USD a million tokens are 1,250 tokens. */
const spokenTokensPerSecond = 21;
/** Heard audio at 0.006 USD a minute and 6 USD a million tokens are 1,000 tokens. */
const heardTokensPerSecond = 17;
const heldHeardTokensPerSecond = 25;
/** Words of fast speech as tokens. */
const transcriptTokensPerSecond = 8;
/** A file whose length cannot be read is taken for speech of 16 kbit/s: few are smaller. */
const leastBytesPerSecond = 2_000;

export function spokenSeconds(characters: number): number {
  return characters / spokenPerSecond;
}

export function spokenTokens(seconds: number): number {
  return Math.ceil(seconds * spokenTokensPerSecond);
}

export function heldSpokenTokens(characters: number): number {
  return spokenTokens(characters / heldSpokenPerSecond);
}

export function heardTokens(seconds: number): number {
  return seconds * heardTokensPerSecond;
}

export function heldHeardTokens(seconds: number): number {
  return seconds * heldHeardTokensPerSecond;
}

export function heldTranscriptTokens(seconds: number): number {
  return seconds * transcriptTokensPerSecond;
}

export function secondsOfUnknown(fileBytes: number): number {
  return Math.ceil(fileBytes / leastBytesPerSecond);
}
