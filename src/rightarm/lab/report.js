"use strict";
// Draws the charts, lets legends show and hide curves, sorts and searches tables, and makes ready for printing.
(() => {
  const PRINTED = { width: 680, height: 340 }; // pixels; two charts fit on a page of paper
  const settings = {
    responsive: true,
    displaylogo: false,
    showSendToCloud: false, // plotly.js would offer to send the data to its makers
    plotlyServerURL: "",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };
  const charts = [...document.querySelectorAll("figure.chart")];
  const plotOf = (chart) => chart.querySelector(".plot");
  const folded = (chart) => chart.closest("details.more:not([open])") !== null;

  const draw = (chart) => {
    const plot = plotOf(chart);
    if (plot.data || folded(chart)) return;
    const { data, layout } = JSON.parse(chart.querySelector('script[type="application/json"]').textContent);
    Plotly.newPlot(plot, data, layout, settings);
  };

  // One after the other, so that the page can be used meanwhile.
  const waiting = charts.filter((chart) => !folded(chart));
  const next = () => {
    const chart = waiting.shift();
    if (!chart) return;
    draw(chart);
    setTimeout(next, 0);
  };
  next();
  for (const more of document.querySelectorAll("details.more"))
    more.addEventListener("toggle", () => more.open && more.querySelectorAll("figure.chart").forEach(draw));

  // A logarithmic axis shows the means; bands may leave the picture, as they come close to zero.
  const logRange = (plot) => {
    let [low, high] = [Infinity, 0];
    for (const trace of plot.data) {
      if (trace.visible === false || trace.meta === "band") continue;
      for (const y of trace.y) {
        if (y > 0) [low, high] = [Math.min(low, y), Math.max(high, y)];
      }
    }
    return high > 0 ? [Math.log10(low) - 0.1, Math.log10(high) + 0.15] : null;
  };

  const rescale = (plot) => {
    const range = plot.layout.yaxis.type === "log" ? logRange(plot) : null;
    Plotly.relayout(plot, range ? { "yaxis.range": range } : { "yaxis.autorange": true });
  };

  for (const chart of charts) {
    chart.addEventListener("change", (event) => {
      const traces = event.target.dataset.traces;
      if (!traces) return;
      draw(chart);
      Plotly.restyle(plotOf(chart), { visible: event.target.checked }, traces.split(" ").map(Number));
      if (chart.querySelector(".scales")) rescale(plotOf(chart));
    });
    for (const button of chart.querySelectorAll(".scale button"))
      button.addEventListener("click", () => {
        const { axis, type } = button.dataset;
        draw(chart);
        Plotly.relayout(plotOf(chart), { [`${axis}.type`]: type, [`${axis}.autorange`]: true });
        if (axis === "yaxis") rescale(plotOf(chart));
        for (const other of button.parentElement.querySelectorAll("button"))
          other.setAttribute("aria-pressed", String(other === button));
      });
  }

  // Words that all must occur hide what does not have them.
  const search = (input, items) =>
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/);
      for (const item of items) item.hidden = !words.every((word) => item.textContent.toLowerCase().includes(word));
    });
  for (const choose of document.querySelectorAll(".choose"))
    search(choose.querySelector("input"), choose.querySelectorAll("li"));
  for (const find of document.querySelectorAll(".find"))
    search(find, find.parentElement.querySelectorAll("tbody tr"));

  // Numbers sort as numbers, words as words, and what is missing comes last.
  const compare = (one, other) => {
    if (one === undefined || other === undefined) return 0;
    const [a, b] = [Number(one), Number(other)];
    return Number.isNaN(a) || Number.isNaN(b) ? one.localeCompare(other, "en", { numeric: true }) : a - b;
  };
  const sort = (heading) => {
    const body = heading.closest("table").tBodies[0];
    const place = heading.cellIndex;
    const down = heading.getAttribute("aria-sort") === "ascending";
    const value = (row) => row.cells[place].dataset.value;
    const rows = [...body.rows].sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      return (a === undefined) - (b === undefined) || (down ? compare(b, a) : compare(a, b));
    });
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows);
  };
  for (const heading of document.querySelectorAll(".sortable th")) {
    heading.addEventListener("click", () => sort(heading));
    heading.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      sort(heading);
    });
  }

  // On paper everything is open and as wide as the paper.
  let opened = [];
  const heights = new Map(charts.map((chart) => [chart, parseInt(plotOf(chart).style.height, 10)]));
  const resize = (chart, width, height) => {
    const kept = chart.querySelector(".scales") ? height : heights.get(chart); // bars need a height by their number
    plotOf(chart).style.height = `${kept}px`;
    Plotly.relayout(plotOf(chart), { width, height: kept, autosize: width === null });
  };
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open]):not(.more)")];
    for (const details of opened) details.open = true;
    for (const chart of charts) {
      draw(chart);
      if (plotOf(chart).data) resize(chart, PRINTED.width, PRINTED.height);
    }
  });
  window.addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
    for (const chart of charts) {
      if (plotOf(chart).data) resize(chart, null, heights.get(chart));
    }
  });
})();
