/** Some vendors send the words of an audio twice, as content and as its transcript, in any order: this keeps one. Pure. */

/** The longest text that is kept for the comparison. */
const maxKept = 65_536;

type Source = 'content' | 'transcript';

export class SpokenText {
  hasTranscript = false;
  /** The source that is ahead, and by which text. */
  #leader: Source | undefined;
  #lead = '';
  /** The text of the other source that was left out. */
  #repeated = '';
  /** false: the two are different texts, or too far apart. */
  #isCompared = true;

  /** The part of this piece of the content that no transcript contains. */
  content(piece: string): string {
    return this.#add('content', piece);
  }

  /** The part of this piece of the transcript that no content contains. */
  transcript(piece: string): string {
    this.hasTranscript ||= piece !== '';
    return this.#add('transcript', piece);
  }

  #add(source: Source, piece: string): string {
    if (!this.#isCompared) return piece;
    const lead = this.#lead;
    if (lead === '' || this.#leader === source) return this.#extend(source, piece);
    if (lead.startsWith(piece)) {
      this.#lead = lead.slice(piece.length);
      this.#repeated = (this.#repeated + piece).slice(-maxKept);
      return '';
    }
    if (piece.startsWith(lead)) {
      this.#lead = '';
      return this.#extend(source, piece.slice(lead.length));
    }
    this.#isCompared = false;
    // What looked like a repetition was the beginning of another text.
    return this.#repeated + piece;
  }

  #extend(source: Source, text: string): string {
    if (this.#leader !== source) this.#repeated = '';
    this.#leader = source;
    this.#lead += text;
    if (this.#lead.length > maxKept) {
      this.#isCompared = false;
      this.#lead = '';
    }
    return text;
  }
}
