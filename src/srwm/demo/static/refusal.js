// What a back end says when it cannot do what it is asked, with the status that HTTP has for it.

export const GONE = 404; // There is no such session (any more).

export class Refusal extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}
