//! The page in a browser, on a phone and on a desk, by day and by night.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use kettle_skip::skip;

use crate::page;

#[test]
fn the_page_fits_its_window() {
    for width in [360, 390, 768, 1280] {
        let Some(found) = ask(width, WIDEST) else { return };
        assert_eq!(found, "", "wider than {width} pixels");
    }
}

#[test]
fn no_chart_draws_beyond_its_box() {
    for width in [360, 1280] {
        let Some(found) = ask(width, OVERHANG) else { return };
        assert_eq!(found, "", "at {width} pixels");
    }
}

#[test]
fn no_two_words_of_a_chart_overlap() {
    for width in [360, 1280] {
        let Some(found) = ask(width, OVERLAPS) else { return };
        assert_eq!(found, "", "at {width} pixels");
    }
}

#[test]
fn the_answer_is_on_the_first_screen() {
    let Some(found) = ask(1280, FIRST_SCREEN) else { return };
    assert_eq!(found, "");
}

#[test]
fn no_table_hides_a_column_on_a_desk() {
    let Some(found) = ask(1400, HIDDEN_COLUMNS) else { return };
    assert_eq!(found, "", "wider than their box");
}

#[test]
fn the_browser_finds_nothing_to_complain_about() {
    let Some(found) = ask(1280, COMPLAINTS) else { return };
    assert_eq!(found, "");
}

/// Returns what a script finds on the page in a frame so wide. `None`, and a line in the list of skipped tests, without
/// Chromium.
fn ask(width: u32, script: &str) -> Option<String> {
    let Some(browser) = browser() else {
        skip("no chromium");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    // Chromium has a least width for windows, but none for frames. Scripts are let in for the test only.
    let page =
        page().replacen("default-src 'none'", "default-src 'none';script-src 'unsafe-inline'", 1);
    let probe = format!(
        "<script>addEventListener('load',()=>{{{script}\nparent.postMessage(found.slice(0,9).join('; '),'*')}})</script></body>"
    );
    fs::write(folder.path().join("page.html"), page.replacen("</body>", &probe, 1)).unwrap();
    let frame = format!(
        "<!doctype html><script>onmessage=e=>{{document.title='ans'+'wer:'+e.data+':end'}}</script>\
         <iframe src=page.html style='width:{width}px;height:20000px;border:0'></iframe>"
    );
    let outer = folder.path().join("frame.html");
    fs::write(&outer, frame).unwrap();
    let output = Command::new("timeout")
        .arg(PATIENCE.as_secs().to_string())
        .arg(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args([
            "--disable-dev-shm-usage",
            "--virtual-time-budget=20000",
            "--window-size=1400,900",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("file://{}", outer.display()))
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let dom = String::from_utf8(output.stdout).unwrap();
    let answer = dom.split_once("answer:").and_then(|(_, rest)| rest.split_once(":end<"));
    let answer = answer.map(|(answer, _)| answer.to_owned());
    Some(answer.unwrap_or_else(|| panic!("no answer in {} bytes: {dom:.400}", dom.len())))
}

fn browser() -> Option<&'static str> {
    let is_there = |name: &&str| {
        let version = Command::new(name).arg("--version").stderr(Stdio::null()).output();
        version.is_ok_and(|output| output.status.success())
    };
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(is_there)
}

/// Elements that make the page wider than its window; what scrolls by itself may be.
const WIDEST: &str = "
const found=[], wide=document.documentElement.clientWidth;
document.querySelectorAll('details').forEach(d=>d.open=true);
if(document.documentElement.scrollWidth>wide) document.querySelectorAll('body *').forEach(e=>{
  if(!e.closest('.scroll,pre,nav')&&e.getBoundingClientRect().right>wide+0.5) found.push(e.tagName+'.'+e.getAttribute('class')+' '+e.textContent.slice(0,30));
});";

/// The verdict, where it does not begin and answer its first question on the first screen.
const FIRST_SCREEN: &str = "
const found=[], row=document.querySelector('table.verdict tbody tr');
if(!row) found.push('no verdict');
else if(row.getBoundingClientRect().bottom>800) found.push('the first answer ends at '+row.getBoundingClientRect().bottom);
const facts=document.querySelector('.facts').getBoundingClientRect().top;
if(facts<2000) found.push('the machine comes at '+facts);";

/// Tables that have to be scrolled sideways.
const HIDDEN_COLUMNS: &str = "
const found=[];
document.querySelectorAll('details').forEach(d=>d.open=true);
document.querySelectorAll('.scroll').forEach(e=>{
  if(e.scrollWidth>e.clientWidth+1) found.push((e.closest('figure')||{}).id+' '+e.scrollWidth+' in '+e.clientWidth);
});";

/// Shapes and words outside the box of their drawing.
const OVERHANG: &str = "
const found=[];
document.querySelectorAll('details').forEach(d=>d.open=true);
document.querySelectorAll('svg.chart').forEach(svg=>{
  const box=svg.getBoundingClientRect(); if(!box.width) return;
  svg.querySelectorAll('text,rect,polyline,line').forEach(e=>{
    const r=e.getBoundingClientRect();
    if(r.left<box.left-1||r.right>box.right+1||r.top<box.top-2||r.bottom>box.bottom+2)
      found.push(svg.getAttribute('aria-label')+': '+(e.textContent||e.tagName));
  });
});";

/// Words of a drawing that lie on each other.
const OVERLAPS: &str = "
const found=[];
document.querySelectorAll('details').forEach(d=>d.open=true);
document.querySelectorAll('svg.chart').forEach(svg=>{
  if(!svg.getBoundingClientRect().width) return;
  const words=[...svg.querySelectorAll('text')].map(e=>[e.textContent,e.getBoundingClientRect()]);
  words.forEach(([a,p],i)=>words.slice(i+1).forEach(([b,q])=>{
    const x=Math.min(p.right,q.right)-Math.max(p.left,q.left), y=Math.min(p.bottom,q.bottom)-Math.max(p.top,q.top);
    if(x>2&&y>5) found.push(svg.getAttribute('aria-label')+': '+a+' | '+b);
  }));
});";

/// Variables without a value, in either theme, and markup that was mended.
const COMPLAINTS: &str = "
const found=[], style=document.querySelector('style').textContent;
const used=new Set([...style.matchAll(/var\\((--[a-z-]+)\\)/g)].map(m=>m[1]));
const [root,dark]=[...document.styleSheets[0].cssRules].reduce((a,r)=>{
  if(r.selectorText===':root') a[0]=r.style; if(r.media&&r.conditionText.includes('dark')) a[1]=r.cssRules[0].style; return a},[]);
used.forEach(v=>{if(!root.getPropertyValue(v)||!dark.getPropertyValue(v)) found.push(v)});
if(used.size<10) found.push('only '+used.size+' colours');
document.querySelectorAll('*').forEach(e=>{if(e instanceof HTMLUnknownElement) found.push(e.tagName)});";

/// A loaded machine takes this long for a page at the most.
const PATIENCE: Duration = Duration::from_secs(90);
