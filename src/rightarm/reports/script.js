"use strict";
// Draws the charts, lets legends show and hide curves, sorts and searches tables, and makes ready for printing.
(() => {
  const PRINTED = { alone: [680, 260], beside: [330, 230] }; // pixels: a chart as wide as the paper, or one of two
  const settings = {
    responsive: true,
    displaylogo: false,
    showSendToCloud: false, // plotly.js would offer to send the data to its makers
    plotlyServerURL: "",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };
  const charts = [...document.querySelectorAll("figure.chart")];
  const plotOf = (chart) => chart.querySelector(".plot");
  const dataOf = (chart) => JSON.parse(chart.querySelector('script[type="application/json"]').textContent);
  const folded = (chart) => chart.closest("details.more:not([open])") !== null;

  // A logarithmic axis shows the means; bands may leave the picture, as they come close to zero.
  const logRange = (data, place) => {
    let [low, high] = [Infinity, 0];
    for (const trace of data) {
      if (trace.visible === false || trace.meta === "band") continue;
      for (const value of trace[place]) if (value > 0) [low, high] = [Math.min(low, value), Math.max(high, value)];
    }
    const room = 0.03 + 0.04 * Math.log10(high / low);
    return high > 0 ? [Math.log10(low) - room, Math.log10(high) + room] : null;
  };
  // Powers of ten in a range of logarithms; other round numbers too where these are few.
  const ticks = ([low, high]) => {
    let found = [];
    for (const digits of [[1], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]]) {
      found = [];
      for (let power = Math.floor(low); power <= high; power++)
        for (const digit of digits) found.push(Number(`${digit}e${power}`));
      found = found.filter((value) => Math.log10(value) >= low && Math.log10(value) <= high);
      if (found.length > 2) break;
    }
    return found;
  };
  // An axis as its type asks for; a logarithmic one may have numbers of its own, which then have texts.
  const scaled = (place, axis, data) => {
    if (axis.fixedrange) return axis;
    const range = axis.type === "log" ? logRange(data, place) : null;
    if (!range) return { ...axis, tickmode: "auto", autorange: !axis.range };
    const tickvals = axis.ticktext ? axis.tickvals : ticks(range);
    return { ...axis, tickmode: "array", tickvals, range, autorange: false };
  };
  const rescale = (plot, name, type) => {
    const { range, ...axis } = plot.layout[name];
    Plotly.relayout(plot, { [name]: scaled(name[0], { ...axis, type }, plot.data) });
  };

  // The page's colours, light or dark; curves that are black or grey on paper are as light as text in the dark.
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const axis = () => ({ gridcolor: colour("grid"), zerolinecolor: colour("line"), linecolor: colour("soft") });
  const themed = ({ data, layout }) => {
    const inks = { "#000000": colour("text"), "#555555": colour("soft") };
    const line = (trace) => ({ ...trace.line, color: inks[trace.line.color] ?? trace.line.color });
    return {
      data: data.map((trace) => (trace.line ? { ...trace, line: line(trace) } : trace)),
      layout: {
        ...layout,
        font: { family: "system-ui, sans-serif", size: 13, color: colour("text") },
        paper_bgcolor: colour("paper"),
        plot_bgcolor: colour("paper"),
        xaxis: { ...layout.xaxis, ...axis() },
        yaxis: { ...layout.yaxis, ...axis() },
      },
    };
  };

  const draw = (chart) => {
    const plot = plotOf(chart);
    if (plot.data || folded(chart)) return;
    const { data, layout } = themed(dataOf(chart));
    const [xaxis, yaxis] = [scaled("x", layout.xaxis, data), scaled("y", layout.yaxis, data)];
    Plotly.newPlot(plot, data, { ...layout, xaxis, yaxis }, settings);
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

  for (const chart of charts) {
    chart.addEventListener("change", (event) => {
      const traces = event.target.dataset.traces;
      if (!traces) return;
      draw(chart);
      Plotly.restyle(plotOf(chart), { visible: event.target.checked }, traces.split(" ").map(Number));
      if (chart.querySelector(".scales")) rescale(plotOf(chart), "yaxis", plotOf(chart).layout.yaxis.type);
    });
    for (const button of chart.querySelectorAll(".scale button"))
      button.addEventListener("click", () => {
        const { axis, type } = button.dataset;
        draw(chart);
        rescale(plotOf(chart), axis, type);
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

  // Other colours when the system goes dark or light, and for paper, where charts are as wide as it is.
  const recolour = (chart) => {
    const plot = plotOf(chart);
    if (!plot.data) return;
    const { data, layout } = themed({ data: dataOf(chart).data, layout: plot.layout });
    data.forEach((trace, i) => (trace.visible = plot.data[i].visible));
    Plotly.react(plot, data, layout, settings);
  };
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(recolour));

  const heights = new Map(charts.map((chart) => [chart, parseInt(plotOf(chart).style.height, 10)]));
  const resize = (chart, width, height) => {
    const kept = chart.querySelector(".scales") ? height : heights.get(chart); // bars need a height by their number
    plotOf(chart).style.height = `${kept}px`;
    Plotly.relayout(plotOf(chart), { width, height: kept, autosize: width === null, "font.size": width === null ? 13 : 10 });
  };
  window.addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    for (const chart of charts) {
      draw(chart);
      recolour(chart);
      if (plotOf(chart).data) resize(chart, ...(chart.closest(".panels") ? PRINTED.beside : PRINTED.alone));
    }
  });
  window.addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    for (const chart of charts) {
      recolour(chart);
      if (plotOf(chart).data) resize(chart, null, heights.get(chart));
    }
  });
})();
