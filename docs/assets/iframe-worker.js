// Search needs a worker, and browsers refuse workers to pages that were opened from disk. There, a hidden frame does the
// same work; everywhere else this file does nothing.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      this.waiting = []
      const start = () => {
        document.body.append(frame)
        const inside = frame.contentWindow
        inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
        const script = inside.document.createElement("script")
        script.src = url
        script.onload = () => {
          this.inside = inside
          this.waiting.splice(0).forEach(data => this.postMessage(data))
        }
        inside.document.body.append(script)
      }
      document.body ? start() : addEventListener("DOMContentLoaded", start)
    }

    postMessage(data) {
      if (this.inside) this.inside.dispatchEvent(new MessageEvent("message", { data }))
      else this.waiting.push(data)
    }

    terminate() {}
  }
}
